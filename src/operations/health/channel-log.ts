import { Injectable } from '@nestjs/common';
import { MemberReads } from '../../database/member-reads.js';
import { Logger } from '../../http/logger.js';

/** Logs when notifications of member writes by other instances stop arriving, and when they arrive again. */
@Injectable()
export class ChannelLog {
  constructor(reads: MemberReads, logger: Logger) {
    reads.onChannel((channel) => {
      if (channel.heard) logger.info({}, 'the channel of member writes is heard again: replicas are asked');
      else
        logger.warn(
          { reason: channel.reason },
          'the channel of member writes is cut: members are read from the primary',
        );
    });
  }
}
