"""`makeready`, the operator's command line. It speaks gRPC to the services and opens no database."""
