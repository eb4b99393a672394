-- wrk -s load.lua URL -- REQUESTS METHOD BODY
-- REQUESTS: a file with "header<TAB>value<TAB>path" per line, requested in order.

local requests, n = {}, 0

function init(args)
  local body = args[3] ~= "" and args[3] or nil
  for line in io.lines(args[1]) do
    local header, value, path = line:match("^([^\t]+)\t([^\t]+)\t(.+)$")
    local headers = { [header] = value }
    if body then headers["Content-Type"] = "application/json" end
    requests[#requests + 1] = wrk.format(args[2], path, headers, body)
  end
end

function request()
  n = n % #requests + 1
  return requests[n]
end

-- Latencies in microseconds.
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"failed":%d}\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.timeout + e.status))
end
