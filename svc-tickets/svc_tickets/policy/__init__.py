"""Each company's ticket policy: whether completion needs a photo, after how many hours a ticket is stale."""
