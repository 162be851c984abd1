"""The contract as a document: made from the route table and the records, checked against what is committed."""
