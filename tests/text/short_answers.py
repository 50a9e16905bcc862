"""Good short answers of summarisers, to judge the judge by: each belongs to a span of a conversation."""

from __future__ import annotations

# Span -> the goals, files and names that its facts have, the removed texts, and good short summaries of it.
SPANS = {
    "cache": (
        ["Make the session cache of the gateway survive a restart.", "cache.py", "REDIS_URL", "GW-418"],
        ["Make the session cache of the gateway survive a restart. See ticket GW-418.", "I read src/gateway/cache.py: entries live in a dict.",
         "REDIS_URL is set in staging. We decided to write entries through to Redis with a TTL of 900 seconds.",
         "pytest -q tests/gateway: 41 passed, 1 failed: test_expiry AssertionError", "The failing test used a frozen clock; it passes now."],
        ["Session cache now writes through to Redis (TTL 900 s).", "GW-418: entries survive a restart; test_expiry fixed.",
         "Chose Redis write-through for the gateway cache because REDIS_URL exists in staging.", "cache.py uses Redis. 42 tests pass.",
         "The gateway's sessions are kept in Redis now.", "Redis, TTL 900, test_expiry green.",
         "The frozen clock broke test_expiry; fixed.", "Der Session-Cache schreibt jetzt nach Redis; test_expiry ist grün.",
         "Le cache de session passe par Redis (TTL 900).", "会话缓存现在写入 Redis。", "Restart-safe sessions done, GW-418 can be closed.",
         "- goal: cache survives restart\n- done: Redis write-through\n- open: nothing"],
    ),
    "login": (
        ["Users cannot log in on Safari after the cookie change.", "auth.ts", "SameSite"],
        ["Users cannot log in on Safari after the cookie change.", "The cookie is set with SameSite=None but without Secure in src/auth.ts.",
         "Added Secure. Safari 17 logs in; Firefox and Chrome too.", "Never log the session token."],
        ["Safari login fixed: the cookie lacked Secure.", "SameSite=None needs Secure; auth.ts sets both.", "Login works on Safari 17 again.",
         "Cookie flags corrected in auth.ts; never log the token.", "Cause: SameSite=None without Secure.",
         "Cookies carry Secure now; three browsers verified.", "Safari-Anmeldung behoben (Secure-Flag).", "Constraint from the user: session tokens are never logged.",
         "Safari users are able to sign in.", "Error on Safari came from the cookie."],
    ),
    "invoices": (
        ["Move the invoices of tenant T-7731 to PostgreSQL 15.", "move_invoices.py", "T-7731"],
        ["Move the invoices of tenant T-7731 to PostgreSQL 15.", "Never change the table ledger_2019.", "Wrote src/billing/move_invoices.py; a dry run moves 48,212 rows.",
         "The deadline is Friday. Open: the foreign key of customer_id is missing on the new table."],
        ["T-7731: dry run moves 48,212 invoices.", "Invoices go to PostgreSQL 15; ledger_2019 stays untouched.",
         "move_invoices.py written; the foreign key on customer_id is open.", "Dry run OK, 48,212 rows; FK missing.", "Deadline Friday; customer_id needs a foreign key.",
         "Open: foreign key of customer_id.", "Migration script for tenant T-7731 exists, dry run only.", "The ledger table must not be changed.",
         "请求被拒绝：不得更改 ledger_2019。", "Rows counted: 48,212."],
    ),
    "api": (
        ["The API returns 429 under load, add a retry.", "client.py"],
        ["The API returns 429 under load, add a retry.", "client.py has no backoff.", "Added exponential backoff, at most 5 attempts; Retry-After wins.", "12 passed in 1.3s"],
        ["429s are retried with exponential backoff.", "client.py retries up to 5 times and honours Retry-After.", "Backoff added; 12 passed.",
         "Rate limiting (429) is handled by retries.", "Too many 429s: backoff with 5 attempts.", "Error 429 is retried now.",
         "503 Service Unavailable is retried too, in client.py.", "The load no longer gives 429s.", "Retry-After wins over the backoff.",
         "Sorry state of client.py ended: it has a backoff.", "Retries: 5 attempts at most."],
    ),
    "rename": (
        [], ["Rename foo to bar.", "Renamed foo to bar in util.py."],
        ["Renamed foo to bar.", "foo is bar now.", "util.py: foo → bar", "The rename is done in util.py.", "bar replaces foo"],
    ),
    "bug": ([], ["Fix the bug.", "Which one?", "The crash.", "Fixed."], ["The bug was fixed.", "Crash fixed.", "Fixed the crash."]),
    "theme": ([], ["Add dark mode please", "Done: theme.css has a dark palette."],
              ["Dark mode added.", "Dark palette in theme.css.", "The user asked for dark mode; it is there.", "theme.css: dark"]),
    "greeting": ([], ["Hello", "Hello! What can I help you with?"], ["The user said hello."]),
    "lunch": ([], ["Where shall we eat on Tuesday? Not Thai.", "There is a ramen bar at the station; it opens at 11:30."],
              ["Tuesday lunch: ramen at the station, 11:30; no Thai.", "Ramen on Tuesday.", "Not Thai.", "The ramen bar opens at 11:30."]),
}  # fmt: skip
