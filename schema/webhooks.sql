-- Endpoints with a due message, and its time. Without sorts, PostgreSQL must use the index by time, so it can keep the plan.
CREATE OR REPLACE FUNCTION endpoints_due() RETURNS TABLE (endpoint_id text, due_at timestamptz)
  LANGUAGE plpgsql STABLE ROWS 10 SET search_path = public, pg_temp SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT e.id, first.due_at FROM webhook_endpoints e CROSS JOIN LATERAL (
    SELECT d.due_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= now()
    ORDER BY d.due_at LIMIT 1
  ) first WHERE e.disabled_at IS NULL;
END $$;
