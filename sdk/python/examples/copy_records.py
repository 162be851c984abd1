"""Brings a copy of all records in step, in SQLite: python copy_records.py copy.sqlite"""

import sys

from makeready_client import Makeready, Mirror, SqliteStore

with Makeready() as mk:
    store = SqliteStore(sys.argv[1])
    print(Mirror(mk, store).run())
    store.close()
