// Makes the calls in CALLS with openapi-fetch and openapi-typescript's types, which `tsc` checks, and prints each result.
import { readFileSync } from 'node:fs';
import createClient from 'openapi-fetch';

/** @import { Client } from 'openapi-fetch' */
/** @import { operations, paths } from './schema.ts' */
/** @template {keyof operations} Name @typedef {operations[Name]['parameters']['query']} Query */
/** @typedef {operations['updateProfile']['requestBody']['content']['application/json']} Changes */

const { BASE_URL = '', API_KEY = '', CALLS = '' } = process.env;
/** @type {Client<paths>} */
const api = createClient({ baseUrl: BASE_URL, headers: { 'X-API-Key': API_KEY } });

const OPERATIONS = {
  getMe: () => api.GET('/api/public/me'),
  getProfile: () => api.GET('/api/public/profile'),
  /** @param {object} _ @param {Changes} body */
  updateProfile: (_, body) => api.PUT('/api/public/profile', { body }),
  /** @param {Query<'listEvents'>} query */
  listEvents: (query) => api.GET('/api/public/events', { params: { query } }),
  /** @param {{ id: number }} path */
  getEvent: (path) => api.GET('/api/public/events/{id}', { params: { path } }),
  /** @param {Query<'listConnections'>} query */
  listConnections: (query) => api.GET('/api/public/connections', { params: { query } }),
  /** @param {Query<'listEarnedAchievements'>} query */
  listEarnedAchievements: (query) => api.GET('/api/public/achievements/earned', { params: { query } }),
  /** @param {Query<'listAllAchievements'>} query */
  listAllAchievements: (query) => api.GET('/api/public/achievements/all', { params: { query } }),
  getAchievementStatistics: () => api.GET('/api/public/achievements/stats'),
  listPinnedAchievements: () => api.GET('/api/public/achievements/pinned'),
  /** @param {{ id: number }} path */
  getAchievement: (path) => api.GET('/api/public/achievements/{id}', { params: { path } }),
  /** @param {Query<'listChanges'>} query */
  listChanges: (query) => api.GET('/api/public/sync', { params: { query } }),
  getCredential: () => api.GET('/api/public/credential'),
  /** @param {operations['getProblem']['parameters']['path']} path */
  getProblem: (path) => api.GET('/api/public/problems/{code}', { params: { path } }),
};

/** @type {{ operation: keyof typeof OPERATIONS, parameters: never, body: never }[]} */
const calls = JSON.parse(readFileSync(CALLS, 'utf8'));
const given = [];
for (const { operation, parameters, body } of calls) {
  const { data, error, response } = await OPERATIONS[operation](parameters, body);
  given.push({ status: response.status, body: data ?? error });
}
console.log(JSON.stringify(given));
