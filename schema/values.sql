-- Lower case, in any database locale. To sort by its code points, add COLLATE "C".
CREATE OR REPLACE FUNCTION fold_case(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN lower(value COLLATE "und-x-icu");

-- The `stored_` functions are for stored columns and CHECKs: PL/pgSQL keeps their plan. PostgreSQL inlines their SQL twins into queries.
CREATE OR REPLACE FUNCTION stored_api_time(value timestamptz) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
  RETURN to_char(value AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS');
END $$;

CREATE OR REPLACE FUNCTION api_time(value timestamptz) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL SAFE
  RETURN to_char(value AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS');

CREATE OR REPLACE FUNCTION local_time(value timestamptz, zone text) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL SAFE
  RETURN to_char(value AT TIME ZONE zone, 'YYYY-MM-DD HH24:MI:SS');

-- Like local_time, but UTC if the system no longer has the time zone. Slow: lists use it only after local_time failed.
CREATE OR REPLACE FUNCTION local_time_or_utc(value timestamptz, zone text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT SET search_path = public, pg_temp AS $$
BEGIN
  RETURN local_time(value, zone);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN api_time(value);
END $$;

-- Whether the API can show the time (finite, years 1 to 9999); with a `margin` of a day, its local time, too.
CREATE OR REPLACE FUNCTION is_showable_time(value timestamptz, margin interval) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN value >= timestamptz '0001-01-01 00:00:00Z' + margin AND value < timestamptz '9999-12-31 24:00:00Z' - margin;
END $$;

CREATE OR REPLACE FUNCTION stored_json_text(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN COALESCE(to_json(value)::text, 'null');
END $$;

CREATE OR REPLACE FUNCTION json_text(value text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN COALESCE(to_json(value)::text, 'null');

CREATE OR REPLACE FUNCTION percentage(part bigint, whole bigint) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN whole = 0 THEN 0.00 ELSE 0.01 * ((20000 * part + whole) / (2 * whole)) END;

-- Tier of an achievement, from the unrounded share of active members who earned it.
CREATE OR REPLACE FUNCTION rarity_tier(earners bigint, eligible bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE
    WHEN eligible < 10 THEN 'unrated'
    WHEN 100 * earners >= 50 * eligible THEN 'common'
    WHEN 100 * earners >= 20 * eligible THEN 'uncommon'
    WHEN 100 * earners >= 5 * eligible THEN 'rare'
    WHEN 100 * earners >= eligible THEN 'epic'
    ELSE 'legendary'
  END;

-- The cost parameters of another system's hash ($2b$12, $argon2id$v=19$m=65536,t=3,p=4). NULL for this server's hashes and other text.
CREATE OR REPLACE FUNCTION imported_hash_kind(password_hash text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN password_hash NOT LIKE '$argon2id$v=19$m=12288,t=3,p=1$%'
    THEN substring(password_hash FROM '^([$]2[aby][$][0-9]{2}|[$]argon2(?:id|i|d)[$]v=[0-9]{2}[$]m=[0-9]{1,7},t=[0-9]{1,3},p=[0-9]{1,3})[$]') END
$$;
