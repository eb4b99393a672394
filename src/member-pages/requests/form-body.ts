import type { IncomingHttpHeaders } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import express, { type Request, type RequestHandler } from 'express';
import type { Csrf } from '../../accounts/browsers/csrf.js';
import { receiving } from '../../http/pipeline/request-context.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';

/** The fields of the request's form; a field that was sent twice is an array. */
export type Form = Readonly<Record<string, string | string[] | undefined>>;

/** Gives the value of a single field; empty if it is missing or was sent twice. */
export function fieldText(value: Form[string]): string {
  return typeof value === 'string' ? value : '';
}

/** Refuses a form that does not come from one of our pages in this browser. @throws PageFault 403 */
export function requireOwnForm(csrf: Csrf, request: Request, form: Form): void {
  if (!csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
}

/** The server's own forms have a few short fields … */
const readForm = express.urlencoded({ extended: false, limit: '16kb', parameterLimit: 50 });
/** … and one has a small file. */
const readUpload = express.raw({ type: 'multipart/form-data', limit: '96kb' });

/** Gives the {@link Form} that was sent to a page; empty if there is none. @throws PageFault if it cannot be read */
export async function sentForm(context: ExecutionContext): Promise<Form> {
  const { body } = await readBody(context, readForm);
  return { ...(body as Form | undefined) };
}

/** See {@link sentForm}. */
export const FormBody = createParamDecorator((_: unknown, context) => sentForm(context));

/** Reads a form with a file (RFC 7578). @throws PageFault if it cannot be read */
export const UploadBody = createParamDecorator(async (_: unknown, context): Promise<FormData> => {
  const { body, headers } = await readBody(context, readUpload);
  try {
    if (!Buffer.isBuffer(body)) throw new Error('not a form with a file');
    const type = { 'Content-Type': headers['content-type']! };
    return await new Response(new Uint8Array(body), { headers: type }).formData();
  } catch {
    throw new PageFault(400, 'unreadableForm');
  }
});

async function readBody(
  context: ExecutionContext,
  read: RequestHandler,
): Promise<{ body: unknown; headers: IncomingHttpHeaders }> {
  const http = context.switchToHttp();
  const request = http.getRequest<Request>();
  await receiving(
    request,
    () =>
      new Promise<void>((resolve, reject) => {
        void read(request, http.getResponse(), (fault?: unknown) => {
          if (fault) reject(new PageFault(400, 'unreadableForm'));
          else resolve();
        });
      }),
  );
  return request;
}
