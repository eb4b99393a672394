-- wrk -s load.lua URL -- REQUESTS METHOD BODY PAUSE
-- REQUESTS: a file with "header<TAB>value<TAB>path" a line, asked in turn; PAUSE: mean milliseconds between an answer and the next
-- request on its connection, 0 for none.

local requests, n = {}, 0

function init(args)
  local body = args[3] ~= "" and args[3] or nil
  for line in io.lines(args[1]) do
    local header, value, path = line:match("^([^\t]+)\t([^\t]+)\t(.+)$")
    local headers = { [header] = value }
    if body then headers["Content-Type"] = "application/json" end
    requests[#requests + 1] = wrk.format(args[2], path, headers, body)
  end
  local pause = tonumber(args[4])
  if pause > 0 then
    function delay() return math.random(0, math.floor(2 * pause + 0.5)) end
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
