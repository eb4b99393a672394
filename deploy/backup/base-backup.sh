#!/bin/sh
# Makes a base backup of PostgreSQL, verifies it, and removes old ones. Run it daily as the user who owns BACKUPS.
#
#   BACKUP_URL  postgres:// of a role with REPLICATION, on the primary or a standby
#   BACKUPS     a folder on another host's disk, with one folder per backup
#   ARCHIVE     the folder to which archive_command copies the WAL; WAL that no kept backup needs is removed
#   KEEP        number of backups to keep (7)
#   TEXTFILES   the folder of node_exporter's --collector.textfile.directory, for the alert BackupOld; optional
set -eu
: "${BACKUP_URL:?}" "${BACKUPS:?}" "${ARCHIVE:?}"

made="$BACKUPS/$(date -u +%Y-%m-%dT%H%M%S.%NZ)"
trap 'rm -rf "$made.unfinished"' EXIT
pg_basebackup --dbname "$BACKUP_URL" --pgdata "$made.unfinished" --wal-method stream --checkpoint fast
# Debian installs pg_verifybackup in a folder per version, outside PATH.
PATH="$PATH:/usr/lib/postgresql/$(cat "$made.unfinished/PG_VERSION")/bin"
pg_verifybackup --quiet "$made.unfinished"
mv "$made.unfinished" "$made"

# Names sort by time.
ls -d "$BACKUPS"/*Z | head -n "-${KEEP:-7}" | xargs -r rm -r
oldest=$(ls -d "$BACKUPS"/*Z | head -n 1)
pg_archivecleanup "$ARCHIVE" "$(sed -n 's/^START WAL LOCATION: .* (file \(.*\))$/\1/p' "$oldest/backup_label")"

if [ -n "${TEXTFILES:-}" ]; then
  draft=$(mktemp "$TEXTFILES/backup.XXXXXX") # a random name: others may write to this folder
  echo "backup_last_success_timestamp_seconds $(date +%s)" >"$draft"
  chmod 644 "$draft"
  mv "$draft" "$TEXTFILES/backup.prom" # atomically: node_exporter may read it at any time
fi
