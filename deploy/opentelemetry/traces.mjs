// Spans of requests and of their statements, sent as OpenTelemetry's own variables say (OTEL_EXPORTER_OTLP_ENDPOINT and others). No span has
// anything that a caller sent but the trace that it belongs to, and no statement has values: as in the log of the server.
import { tracingChannel } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import { SpanKind, trace } from '@opentelemetry/api';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { NodeSDK } from '@opentelemetry/sdk-node';

const DEFAULTS = {
  OTEL_SERVICE_NAME: 'public-user-api',
  // The server has metrics and a log of its own.
  OTEL_METRICS_EXPORTER: 'none',
  OTEL_LOGS_EXPORTER: 'none',
  OTEL_NODE_RESOURCE_DETECTORS: 'env,serviceinstance',
  // So much, in ms, a process that ends may not have sent.
  OTEL_BSP_SCHEDULE_DELAY: '1000',
};
for (const [name, value] of Object.entries(DEFAULTS)) process.env[name] ??= value;

/** Of requests: paths, queries, headers and addresses may hold credentials, or say who it is. */
const HIDDEN = Object.fromEntries(
  [
    'url.path',
    'url.query',
    'client.address',
    'network.peer.address',
    'network.peer.port',
    'server.address',
    'server.port',
    'user_agent.original',
  ].map((name) => [name, undefined]),
);
/** Asked every few seconds by whoever watches the server. */
const PROBES = new Set(['/livez', '/readyz', '/metrics']);

const http = new HttpInstrumentation({
  // Addresses of webhooks may hold secrets.
  disableOutgoingRequestInstrumentation: true,
  ignoreIncomingRequestHook: ({ url }) => PROBES.has(url),
  startIncomingSpanHook: () => HIDDEN,
  // The log names the trace by this header, of requests too whose trace begins here.
  requestHook: (span, request) => {
    const { traceId, spanId, traceFlags } = span.spanContext();
    const flags = traceFlags.toString(16).padStart(2, '0');
    request.headers.traceparent = `00-${traceId}-${spanId}-${flags}`;
  },
  // At its end: its route is known then.
  applyCustomAttributesOnSpan: (span, request) => {
    const { context, route, method } = request;
    const path = context?.route ?? route?.path;
    if (path !== undefined) span.updateName(`${method} ${path}`).setAttribute('http.route', path);
    if (context !== undefined) span.setAttribute('http.response.header.x-request-id', [context.id]);
  },
});
// Only what a request asks for: what runs beside requests asks many times a second.
const pg = new PgInstrumentation({ requireParentSpan: true, ignoreConnectSpans: true });

new NodeSDK({ instrumentations: [http, pg] }).start();
// It is seen when it is required, and the server imports it.
createRequire(import.meta.url)('node:http');

const tracer = trace.getTracer('public-user-api');
const spans = new WeakMap();

// Reads in pipeline mode, which the server writes itself, past pg. Named as those of pg are.
tracingChannel('public-user-api:pipelined-read').subscribe({
  start: (read) => {
    if (!trace.getActiveSpan()) return;
    const { name, text, database } = read;
    const attributes = { 'db.system.name': 'postgresql', 'db.namespace': database, 'db.query.text': text };
    spans.set(read, tracer.startSpan(`pg.query:${name} ${database}`, { kind: SpanKind.CLIENT, attributes }));
  },
  asyncEnd: (read) => spans.get(read)?.end(),
});
