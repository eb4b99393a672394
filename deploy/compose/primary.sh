#!/bin/sh
# Lets a replica copy this database and follow it. The image runs this once, when it creates the database.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'END'
\getenv password REPLICATION_PASSWORD
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
END
echo 'host replication replicator all scram-sha-256' >>"$PGDATA/pg_hba.conf"
