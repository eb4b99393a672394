import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { UnknownKey } from '../../../auth/api-keys/api-keys.service.js';
import { LimitReached } from '../../../auth/owner.js';
import type { Owner } from '../../../auth/owner.js';
import { addressOf } from '../../../values/network.js';
import { ClientFault } from '../../admin/client-rules.js';
import { UnknownClient } from '../../admin/clients.service.js';
import type { DEVELOPER_PAGES } from '../../upstream/upstream-sign-ins.js';
import { AccountPages } from '../account-pages.js';
import type { Member } from '../account-pages.js';
import type { Form } from '../form-body.js';
import { PageFault } from '../page-faults.js';
import type { Page } from '../pages.js';

/** A signed-in member, with what identifies them as the owner of apps and keys. */
export interface Developer extends Member {
  readonly owner: Owner;
}

/** A page, without the parts that all developer pages share. */
type DeveloperPage = Distributed<Extract<Page, { name: `developer${string}` }>>;
type Distributed<T> = T extends unknown ? Omit<T, 'csrf' | 'user'> : never;

type DeveloperPath = (typeof DEVELOPER_PAGES)[number];

/** Common to all pages below `/developer`. */
@Injectable()
export class DeveloperPages {
  constructor(private readonly account: AccountPages) {}

  /** Finds the member for whom the page is shown. @returns undefined if nobody is signed in; the sign-in was then sent instead */
  async visitor(page: DeveloperPath, request: Request, response: Response): Promise<Developer | undefined> {
    const member = await this.account.visitor(page, request, response);
    return member && developerOf(request, member);
  }

  /** Finds the member who sent a form of such a page. @throws PageFault if the CSRF token is wrong, or nobody is signed in */
  async sender(request: Request, response: Response, form: Form): Promise<Developer> {
    return developerOf(request, await this.account.sender(request, response, form));
  }

  /** The same for a form that requires a recent sign-in: see {@link AccountPages.confirmedSender}. */
  async confirmedSender(
    page: DeveloperPath,
    request: Request,
    response: Response,
    form: Form,
  ): Promise<Developer | undefined> {
    const member = await this.account.confirmedSender(page, request, response, form);
    return member && developerOf(request, member);
  }

  send(response: Response, { user, csrf }: Developer, page: DeveloperPage, status = 200): void {
    this.account.send(response, { ...page, csrf, user }, status);
  }
}

function developerOf(request: Request, member: Member): Developer {
  return { ...member, owner: { userId: member.user.id, ip: addressOf(request) ?? null } };
}

/** Checks the form of an id from the URL. @throws PageFault if it cannot be the id of an app or key */
export function idOf(id: string): string {
  if (!/^[\w-]{1,100}$/.test(id)) throw nothingHere();
  return id;
}

/** Catches the faults that a form shows; rethrows everything else. */
export async function caught<T>(work: () => Promise<T>): Promise<T | ClientFault | LimitReached> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ClientFault || error instanceof LimitReached) return error;
    return hideUnknown(error);
  }
}

/** Responds 404 to another member's app or key, as to one that does not exist. */
export function hideUnknown(error: unknown): never {
  throw error instanceof UnknownClient || error instanceof UnknownKey ? nothingHere() : error;
}

/** Makes the 404 page, for what does not exist or is not this member's. */
export function nothingHere(): PageFault {
  return new PageFault(404, 'nothingHere');
}
