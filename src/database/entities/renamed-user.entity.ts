import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** A change of a member's names that has not been copied everywhere yet. Written by the database alone. */
@Entity('renamed_users')
export class RenamedUser {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: number;

  @Column('bigint')
  user_id: number;

  /** null until every copy was compared once; then the transaction (xid8) before which all transactions must have ended. */
  @Column('bigint', { nullable: true })
  settled_before: number | null;
}
