import * as is from '../../import/fields.js';
import { code, recordType, twice } from '../../import/record-type.js';
import { derivedOfConnections } from './derived.js';
import { Connection } from './table.js';

const SIDES = `(SELECT line, id, requester_id AS user_id, addressee_id AS peer_id, source, met_at_event_id, requested_at, connected_at,
    CASE status WHEN 'pending' THEN 'pending_sent' ELSE status END AS status FROM import_connections WHERE NOT deleted
  UNION ALL SELECT line, id, addressee_id, requester_id, source, met_at_event_id, requested_at, connected_at,
    CASE status WHEN 'pending' THEN 'pending_received' ELSE status END FROM import_connections WHERE NOT deleted) s`;

export const connections = recordType({
  name: 'connections',
  identities: [['id'], ['requester_id', 'addressee_id']],
  fields: {
    id: is.required(is.id),
    requester_id: is.required(is.idOfMember),
    addressee_id: is.required(is.idOfMember),
    status: is.required(is.oneOf(['accepted', 'pending'])),
    ...is.columns(Connection, 'source', 'met_at_event_id', 'requested_at', 'connected_at'),
    deleted: is.orElse(false, is.flag),
  },
  check: ({ requester_id, addressee_id, status, connected_at }) => {
    if (requester_id !== undefined && requester_id === addressee_id)
      return is.inconsistent('addressee_id', 'members cannot be connected with themselves');
    if (connected_at === undefined) return undefined;
    if (status === 'accepted' && connected_at === null)
      return is.inconsistent('connected_at', 'is required if status is accepted');
    if (status === 'pending' && connected_at !== null)
      return is.inconsistent('connected_at', 'must be null if status is pending');
    return undefined;
  },
  rules: [
    twice(
      'connections',
      ['least(requester_id, addressee_id)', 'greatest(requester_id, addressee_id)'],
      "'requester_id, addressee_id: line ' || d.first || ' already connects these members'",
    ),
    // Allows an id that another line of the import releases. Two conditions, since OR would compare every row with every line.
    `SELECT s.line, ${code('taken')}, 'id: belongs to a connection between other members' FROM import_connections s
  JOIN connections t ON t.id = s.id AND t.user_id < t.peer_id
  WHERE NOT s.deleted AND (t.user_id, t.peer_id) <> (least(s.requester_id, s.addressee_id), greatest(s.requester_id, s.addressee_id))
    AND NOT EXISTS (SELECT FROM import_connections r WHERE r.deleted AND r.id = t.id)
    AND NOT EXISTS (SELECT FROM import_connections r
      WHERE least(r.requester_id, r.addressee_id) = t.user_id AND greatest(r.requester_id, r.addressee_id) = t.peer_id)`,
  ],
  sides: SIDES,
  key: ['user_id', 'peer_id'],
  columns: derivedOfConnections.reported,
  copies: derivedOfConnections.copies,
  // Before the insert, deletes pairs whose id changes, so that two pairs can swap ids.
  release: [
    `WITH gone AS (
  DELETE FROM connections t USING ${SIDES}
  WHERE t.user_id = s.user_id AND t.peer_id = s.peer_id AND t.id <> s.id RETURNING s.line, t.requested_at
) UPDATE import_connections s SET requested_at = COALESCE(s.requested_at, gone.requested_at) FROM gone WHERE gone.line = s.line`,
  ],
  removal: {
    fields: { id: is.id, requester_id: is.id, addressee_id: is.id },
    check: (row) =>
      row.id === null && (row.requester_id === null || row.addressee_id === null)
        ? new is.Fault('must contain id, or requester_id and addressee_id, to delete a connection', 'missing')
        : undefined,
    complete: (row) => {
      if (row.id !== null) row.requester_id = row.addressee_id = null; // the id alone identifies the connection
    },
    rows: `SELECT t.user_id, t.peer_id FROM import_connections s JOIN connections t ON t.id = s.id WHERE s.deleted
  UNION SELECT t.user_id, t.peer_id FROM import_connections s
  JOIN connections t ON t.user_id = s.requester_id AND t.peer_id = s.addressee_id WHERE s.deleted
  UNION SELECT t.user_id, t.peer_id FROM import_connections s
  JOIN connections t ON t.user_id = s.addressee_id AND t.peer_id = s.requester_id WHERE s.deleted`,
  },
});
