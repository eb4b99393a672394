-- The endpoints that have a message due, and since when: of each the first message by time is looked up. Two indexes cost about the same where
-- PostgreSQL takes nothing, or little, to be due, and by the one of members it would read all that waits. Without sorts only the one by time
-- gives the first, so the plan may be kept.
CREATE OR REPLACE FUNCTION endpoints_due() RETURNS TABLE (endpoint_id text, due_at timestamptz)
  LANGUAGE plpgsql STABLE ROWS 10 SET search_path = public, pg_temp SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT e.id, first.due_at FROM webhook_endpoints e CROSS JOIN LATERAL (
    SELECT d.due_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= now()
    ORDER BY d.due_at LIMIT 1
  ) first WHERE e.disabled_at IS NULL;
END $$;
