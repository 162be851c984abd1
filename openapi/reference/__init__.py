"""The contract as a document: generated from the route table and the records, compared with the committed files."""
