// Spans of requests and of their statements, exported as OpenTelemetry's own variables configure (OTEL_EXPORTER_OTLP_ENDPOINT and others). As in the
// server's log, spans contain nothing that a caller sent except the trace context, and statements have no values.
import { tracingChannel } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import { SpanKind, trace } from '@opentelemetry/api';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { NodeSDK } from '@opentelemetry/sdk-node';

const DEFAULTS = {
  OTEL_SERVICE_NAME: 'public-user-api',
  // The server has its own metrics and log.
  OTEL_METRICS_EXPORTER: 'none',
  OTEL_LOGS_EXPORTER: 'none',
  OTEL_NODE_RESOURCE_DETECTORS: 'env,serviceinstance',
  // In ms: spans of this last period are lost when a process ends.
  OTEL_BSP_SCHEDULE_DELAY: '1000',
};
for (const [name, value] of Object.entries(DEFAULTS)) process.env[name] ??= value;

/** Attributes of requests to remove: paths, queries, headers and addresses may contain credentials, or identify somebody. */
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
/** Monitoring requests these paths every few seconds. */
const PROBES = new Set(['/livez', '/readyz', '/metrics']);

const http = new HttpInstrumentation({
  // URLs of webhooks may contain secrets.
  disableOutgoingRequestInstrumentation: true,
  ignoreIncomingRequestHook: ({ url }) => PROBES.has(url),
  startIncomingSpanHook: () => HIDDEN,
  // The log reads the trace id from this header, even if this server started the trace.
  requestHook: (span, request) => {
    const { traceId, spanId, traceFlags } = span.spanContext();
    const flags = traceFlags.toString(16).padStart(2, '0');
    request.headers.traceparent = `00-${traceId}-${spanId}-${flags}`;
  },
  // At the request's end, when its route is known.
  applyCustomAttributesOnSpan: (span, request) => {
    const { context, route, method } = request;
    const path = context?.route ?? route?.path;
    if (path !== undefined) span.updateName(`${method} ${path}`).setAttribute('http.route', path);
    if (context !== undefined) span.setAttribute('http.response.header.x-request-id', [context.id]);
  },
});
// Traces only statements of requests: background work runs many statements per second.
const pg = new PgInstrumentation({ requireParentSpan: true, ignoreConnectSpans: true });

new NodeSDK({ instrumentations: [http, pg] }).start();
// The instrumentation patches http when `require` loads it, but the server imports http.
createRequire(import.meta.url)('node:http');

const tracer = trace.getTracer('public-user-api');
const spans = new WeakMap();

// The server sends reads in pipeline mode itself, without pg. Their spans have the same names as those of pg.
tracingChannel('public-user-api:pipelined-read').subscribe({
  start: (read) => {
    if (!trace.getActiveSpan()) return;
    const { name, text, database } = read;
    const attributes = { 'db.system.name': 'postgresql', 'db.namespace': database, 'db.query.text': text };
    spans.set(read, tracer.startSpan(`pg.query:${name} ${database}`, { kind: SpanKind.CLIENT, attributes }));
  },
  asyncEnd: (read) => spans.get(read)?.end(),
});
