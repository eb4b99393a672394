import type { OauthClient } from '../../database/entities/oauth.entity.js';

/** A client's row, without what pages alone need of it. */
export interface StoredClient extends Omit<
  OauthClient,
  'created_at' | 'disabled_at' | 'logo' | 'document_read_at' | 'owner_id' | 'owner' | 'disabled_by_owner'
> {
  readonly has_logo: boolean;
  /** Its id is the address of a document about it. */
  readonly has_document: boolean;
  /** A member registered it for themselves. */
  readonly by_member: boolean;
}
