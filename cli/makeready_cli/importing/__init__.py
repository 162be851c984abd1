"""`makeready import`: rows of a file become records, each bad row is told and kept, good rows go through."""
