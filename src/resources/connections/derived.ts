import type { Derived } from '../../model/derived.js';
import { isConnectionShown } from './access.js';

export const derivedOfConnections: Derived = {
  table: 'connections',
  copies: {
    from: 'users',
    by: 'peer_id',
    columns: {
      peer_is_disabled: 'o.is_disabled',
      peer_name: 'o.folded_name',
      peer_username: 'o.folded_username',
    },
  },
  totals: [
    {
      of: 'user',
      column: 'connections_count',
      counts: `t.status = 'accepted' AND ${isConnectionShown('t')}`,
    },
  ],
  reported: 'user_id id peer_id status source met_at_event_id requested_at connected_at'.split(' '),
};
