#!/bin/sh
# Copies the database of PRIMARY (as libpq takes it; the password is in PGPASSWORD) into PGDATA where there is none yet, and runs the
# command that it is given, which follows it. A copy that was cut off is begun anew.
set -eu

if [ ! -d "$PGDATA" ]; then
  rm -rf "$PGDATA.copying"
  pg_basebackup --dbname "$PRIMARY" --pgdata "$PGDATA.copying" --write-recovery-conf --wal-method stream --checkpoint fast
  mv "$PGDATA.copying" "$PGDATA"
fi
exec "$@"
