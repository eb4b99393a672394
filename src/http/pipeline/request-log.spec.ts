import { expect, it } from '@jest/globals';
import { parseTraceId } from './request-log.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

it.each([
  `00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-00`,
  `cc-${TRACE}-${SPAN}-01-more`,
  `01-${TRACE}-${SPAN}-ff`,
])('the request log finds the trace in a valid traceparent: %s', (traceparent) => {
  expect(parseTraceId(traceparent)).toBe(TRACE);
});

it.each([
  undefined,
  [`00-${TRACE}-${SPAN}-01`],
  '',
  TRACE,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE}-${SPAN}-1`,
  `00-${TRACE}-${SPAN}-01\n`,
  `01-${TRACE}-${SPAN}-01more`,
])('the request log finds no trace in an invalid traceparent: %j', (traceparent) => {
  expect(parseTraceId(traceparent)).toBeUndefined();
});
