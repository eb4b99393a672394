import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A refusal that concerns no member, to be found by its error id. Anybody can cause any number of them, so they stand in a
 * ring: one that comes takes the place of the oldest.
 */
@Entity('oauth_refusals')
export class OauthRefusal {
  @PrimaryColumn('smallint', { default: () => "nextval('oauth_refusals_place')" })
  place: number;

  @Column('timestamptz', { default: () => 'now()' })
  occurred_at: Date;

  /** What the error page or answer showed. */
  @Column('text')
  error_id: string;

  /** Template of the route, such as `/oauth/authorize`. */
  @Column('text')
  route: string;

  /** Code of the answer. */
  @Column('text')
  error: string;

  /** A word of ours (docs/audit.md). */
  @Column('text')
  reason: string;

  /** As it was sent, which may be no client; without what could be a secret. */
  @Column('text', { nullable: true })
  client_id: string | null;

  /** As it was sent, without query and fragment and what could be a secret. */
  @Column('text', { nullable: true })
  redirect_uri: string | null;

  @Column('inet', { nullable: true })
  ip: string | null;
}
