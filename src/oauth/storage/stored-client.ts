import type { OauthClient } from '../../database/entities/oauth.entity.js';

/** A client's row, without the columns that only pages need. */
export interface StoredClient extends Omit<
  OauthClient,
  'created_at' | 'disabled_at' | 'logo' | 'document_read_at' | 'owner_id' | 'owner' | 'disabled_by_owner'
> {
  readonly has_logo: boolean;
  /** Its id is the URL of its metadata document. */
  readonly has_document: boolean;
  /** Registered by a member for themselves. */
  readonly by_member: boolean;
}
