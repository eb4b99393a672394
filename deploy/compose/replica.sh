#!/bin/sh
# Copies the database of PRIMARY (a connection string of libpq; the password is in PGPASSWORD) into PGDATA if there is none yet, then runs
# the given command: PostgreSQL, which follows PRIMARY. Restarts an interrupted copy.
set -eu

if [ ! -d "$PGDATA" ]; then
  rm -rf "$PGDATA.copying"
  pg_basebackup --dbname "$PRIMARY" --pgdata "$PGDATA.copying" --write-recovery-conf --wal-method stream --checkpoint fast
  mv "$PGDATA.copying" "$PGDATA"
fi
exec "$@"
