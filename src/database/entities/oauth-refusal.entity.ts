import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A refusal that concerns no member, to be found by its error id. Anyone can cause any number of them, so they are stored in a
 * ring: a new one replaces the oldest.
 */
@Entity('oauth_refusals')
export class OauthRefusal {
  @PrimaryColumn('smallint', { default: () => "nextval('oauth_refusals_place')" })
  place: number;

  @Column('timestamptz', { default: () => 'now()' })
  occurred_at: Date;

  /** The error id that the error page or response showed. */
  @Column('text')
  error_id: string;

  /** Template of the route, such as `/oauth/authorize`. */
  @Column('text')
  route: string;

  /** Error code of the response. */
  @Column('text')
  error: string;

  /** One of the words in docs/audit.md. */
  @Column('text')
  reason: string;

  /** As sent, so it may name no client; without what could be a secret. */
  @Column('text', { nullable: true })
  client_id: string | null;

  /** As sent, without query, fragment and what could be a secret. */
  @Column('text', { nullable: true })
  redirect_uri: string | null;

  @Column('inet', { nullable: true })
  ip: string | null;
}
