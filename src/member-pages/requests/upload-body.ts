import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import express, { type Request, type Response as Answer } from 'express';
import { receiving } from '../../http/pipeline/request-context.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';

/** A form with one small file. */
const readUpload = express.raw({ type: 'multipart/form-data', limit: '96kb' });

/** Reads a form with a file (RFC 7578). @throws PageFault if it cannot be read */
export const UploadBody = createParamDecorator(
  async (_: unknown, context: ExecutionContext): Promise<FormData> => {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    await receiving(
      request,
      () =>
        new Promise<void>((resolve, reject) => {
          readUpload(request, http.getResponse<Answer>(), (fault?: unknown) => {
            if (fault) reject(new PageFault(400, 'unreadableForm'));
            else resolve();
          });
        }),
    );
    const { body, headers } = request as { body: unknown; headers: Request['headers'] };
    if (!Buffer.isBuffer(body)) throw new PageFault(400, 'unreadableForm');
    try {
      return await new Response(new Uint8Array(body), {
        headers: { 'Content-Type': headers['content-type']! },
      }).formData();
    } catch {
      throw new PageFault(400, 'unreadableForm');
    }
  },
);
