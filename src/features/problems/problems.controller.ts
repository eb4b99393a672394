import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../../auth/auth.decorators.js';
import { JsonResponse, redirectTo } from '../../http/output/responses.js';
import { IN_NODE, integerField, objectListField, textField } from '../../model/response.js';
import { PathParameter, RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
import { CODES, Problem, PROBLEMS } from '../../http/output/problems.js';
import { Model, wordOf } from '../../model/json-schema.js';
import { prefersHtml } from '../../http/pipeline/accept.guard.js';

const ProblemEntry = new Model('ProblemDefinition', {
  code: textField(IN_NODE, 'Stable name of the error, for programs'),
  status: integerField(IN_NODE, { minimum: 400, maximum: 599 }),
  title: textField(),
  meaning: textField(IN_NODE, 'What went wrong'),
  fix: textField(IN_NODE, 'How to fix it'),
});

const ProblemCatalogue = new Model('ProblemCatalogue', { data: objectListField(ProblemEntry) });

const CATALOGUE = JsonResponse.unchanging({ data: [...PROBLEMS.values()] });
const ENTRIES = new Map([...PROBLEMS].map(([code, problem]) => [code, JsonResponse.unchanging(problem)]));

/** The catalog of error codes: each problem's `type` is the URL of an entry. */
@Controller('api/public/problems')
@Public()
export class ProblemsController {
  @Get()
  @RespondsWith('List error codes', ProblemCatalogue, 'All error codes, with their meaning and fix.')
  listProblems(): JsonResponse {
    return CATALOGUE;
  }

  @Get(':code')
  @PathParameter('code', 'Code of the error', {
    ...wordOf(CODES),
    examples: ['validation_failed'],
  })
  @RespondsWith(
    'Get an error code',
    ProblemEntry,
    'The meaning and fix of an error code. The `type` of every error is the URL of this request.',
  )
  @RespondsWithProblems('not_found')
  getProblem(
    @Param('code') code: string,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): JsonResponse {
    const entry = ENTRIES.get(code);
    if (!entry) throw new Problem('not_found', { detail: 'No error has this code.' });
    // For a person who opens an error's `type` URL in a browser.
    if (prefersHtml(request)) redirectTo(response, 303, `/docs/errors#${code}`);
    return entry;
  }
}
