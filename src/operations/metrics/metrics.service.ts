import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';

/**
 * Prometheus metrics, on a port of their own. Labels hold routes, statuses and codes of ours: no id, and nothing that
 * a caller sent.
 */
@Injectable()
export class Metrics implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly registry = new Registry();
  readonly #durations: Histogram<'method' | 'route' | 'status'>;
  readonly #problems: Counter<'code'>;
  #server: Server | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    database: Database,
    channel: RevocationChannel,
  ) {
    const registers = [this.registry];
    if (config.metricsPort !== undefined) collectDefaultMetrics({ register: this.registry });
    this.#durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Duration of requests, by route and status',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    });
    this.#problems = new Counter({
      name: 'http_problems_total',
      help: 'Answers that were problems, by code: refused credentials, used-up limits, and all others',
      labelNames: ['code'],
      registers,
    });
    new Gauge({
      name: 'database_pool_connections',
      help: 'Connections of the pool, and requests that wait for one',
      labelNames: ['state'],
      registers,
      collect() {
        for (const [state, count] of Object.entries(database.poolState())) this.set({ state }, count);
      },
    });
    new Gauge({
      name: 'revocation_channel_up',
      help: '1 while credentials may be remembered, 0 while each is looked up',
      registers,
      collect() {
        this.set(channel.trusted ? 1 : 0);
      },
    });
  }

  /** Whether anybody is told: else nothing is measured. */
  get enabled(): boolean {
    return this.config.metricsPort !== undefined;
  }

  /** Middleware: times every request. */
  observe() {
    return (request: Request, response: Response, next: NextFunction): void => {
      response.once('close', () => {
        const { startedAt, problem, route: named } = request.context;
        // A route of ours, or one name for all that is none: what callers make up must not become labels.
        const route = named ?? (request.route as { path: string } | undefined)?.path ?? 'none';
        const method = ['GET', 'HEAD', 'PUT', 'POST', 'OPTIONS'].includes(request.method)
          ? request.method
          : 'other';
        const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
        this.#durations.observe({ method, route, status: response.statusCode }, seconds);
        if (problem !== undefined) this.#problems.inc({ code: problem });
      });
      next();
    };
  }

  async onApplicationBootstrap(): Promise<void> {
    const { metricsPort, host } = this.config;
    if (metricsPort === undefined) return;
    const server = createServer((request, response) => {
      if (request.url !== '/metrics') {
        response.writeHead(404).end();
        return;
      }
      this.registry.metrics().then(
        (text) => response.writeHead(200, { 'Content-Type': this.registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(metricsPort, host, resolve);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise<void>((resolve) => (this.#server ? this.#server.close(() => resolve()) : resolve()));
  }
}
