"""For the tests of your program: records, signed deliveries, and an API that answers in this process.

    from makeready_client import Makeready, models
    from makeready_client.testing import FakeApi, record, signed

    api = FakeApi()
    api.add(record(models.Ticket, entity_id=17, title="Tap"))
    client = Makeready("mk_any", base_url=api.base_url, transport=api)

All of it plays the contract's own examples, and needs no network.
"""

from makeready_client.testing.fake import FakeApi
from makeready_client.testing.records import SECRET, Delivery, record, signed

__all__ = ["SECRET", "Delivery", "FakeApi", "record", "signed"]
