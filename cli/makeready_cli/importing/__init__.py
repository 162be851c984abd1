"""`makeready import`: makes records of a file's rows. It reports and stores each bad row and imports the good ones."""
