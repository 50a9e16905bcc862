"""Secrets and near-secrets. Keys are put together here, from parts, so that no file of the repository holds one."""

from __future__ import annotations

import random
import string
from typing import NamedTuple

_LETTERS = string.ascii_letters + string.digits


class Case(NamedTuple):
    """A text, what in it must go, and what of it must stay."""

    name: str
    text: str
    secrets: tuple[str, ...]
    kept: tuple[str, ...] = ()


def drawn(length: int, alphabet: str = _LETTERS, seed: int = 7) -> str:
    """Return `length` characters of `alphabet`, the same each time, with a digit among them."""
    made = random.Random(seed).choices(alphabet, k=length)
    made[length // 2] = next(char for char in alphabet if char.isdigit()) if "0" in alphabet else made[0]
    return "".join(made)


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
BASE64 = _LETTERS + "+/"
SHAPES = {
    "openai": "sk-" + drawn(48),
    "openai-project": "sk-" + "proj-" + drawn(60, _LETTERS + "-_"),
    "anthropic": "sk-" + "ant-api03-" + drawn(90, _LETTERS + "-_"),
    "openrouter": "sk-" + "or-v1-" + drawn(64, HEX),
    "litellm": "sk-" + "team-" + drawn(22),
    "google": "AI" + "za" + drawn(35, _LETTERS + "-_"),
    "google-oauth": "ya29" + "." + drawn(60),
    "google-client": "GOC" + "SPX-" + drawn(28),
    "github-classic": "gh" + "p_" + drawn(36),
    "github-oauth": "gh" + "o_" + drawn(36),
    "github-fine": "github" + "_pat_" + drawn(22) + "_" + drawn(59),
    "gitlab": "gl" + "pat-" + drawn(20),
    "slack-bot": "xo" + "xb-" + drawn(12, string.digits) + "-" + drawn(24),
    "slack-user": "xo" + "xp-" + drawn(12, string.digits) + "-" + drawn(24),
    "aws-id": "AK" + "IA" + drawn(16, UPPER),
    "aws-session-id": "AS" + "IA" + drawn(16, UPPER),
    "huggingface": "hf" + "_" + drawn(34),
    "npm": "np" + "m_" + drawn(36),
    "pypi": "py" + "pi-" + drawn(80, _LETTERS + "-_"),
    "sendgrid": "SG" + "." + drawn(22) + "." + drawn(43),
    "stripe-live": "sk" + "_live_" + drawn(24),
    "stripe-restricted": "rk" + "_live_" + drawn(24),
    "stripe-hook": "wh" + "sec_" + drawn(32),
    "groq": "gs" + "k_" + drawn(52),
    "xai": "xa" + "i-" + drawn(80),
    "replicate": "r8" + "_" + drawn(37),
    "databricks": "da" + "pi" + drawn(32, HEX),
    "vault": "hv" + "s." + drawn(24),
    "telegram": drawn(9, "123456789") + ":A" + "A" + drawn(33),
    "age": "AGE-" + "SECRET-KEY-1" + drawn(58, UPPER),
    "jwt": "ey" + "J" + drawn(33) + ".ey" + "J" + drawn(70) + "." + drawn(43, _LETTERS + "-_"),
    "jwt-unsigned": "ey" + "J" + drawn(33) + ".ey" + "J" + drawn(70) + ".",
}

AWS_SECRET = drawn(40, BASE64, seed=3)
AZURE = drawn(86, BASE64, seed=4) + "=="
BODY = [drawn(64, BASE64, seed=n) for n in range(10, 14)] + [drawn(22, BASE64, seed=14) + "=="]
BEGIN = "-----BEGIN " + "%sPRIVATE KEY-----"
END = "-----END " + "%sPRIVATE KEY-----"


def private_key(kind: str, newline: str = "\n") -> str:
    """Return a private key of `kind` ("RSA ", "OPENSSH ", "") with lines of random characters."""
    return newline.join([BEGIN % kind, *BODY, END % kind])


_WORD = "hunter" + "2"
_PHRASE = "correct horse " + "battery staple"
_RAW = drawn(18, seed=5)

ASSIGNED = (
    # The plain forms, as Ariadne's compaction extension names them.
    Case("spec", "api_key=sk-" + "abc123", ("abc123",), ("api_key=<REDACTED>",)),
    Case("colon", f"password: {_WORD}", (_WORD,), ("password: <REDACTED>",)),
    Case("next sentence", f"password: {_WORD} for the deploy. Never log it.", (_WORD,), (" Never log it.",)),
    Case("no space", f"Password:{_WORD}", (_WORD,), ("Password:",)),
    Case("upper", f"API-KEY = {_RAW}", (_RAW,), ("API-KEY = ",)),
    Case("words", f"API key: {_RAW}", (_RAW,), ("API key: ",)),
    Case("token", f"token={_RAW} retries=3", (_RAW,), (" retries=3",)),
    Case("secret", f"client_secret: {_RAW}", (_RAW,), ("client_secret: ",)),
    Case("number", "token=493027 and token_count=12", ("493027",), ("token_count=12",)),
    # JSON, however often it was escaped, and as Python prints it.
    Case("json", f'{{"api_key": "{_RAW}", "n": 1}}', (_RAW,), ('{"api_key": "<REDACTED>", "n": 1}',)),
    Case("json tight", f'{{"apiKey":"{_RAW}","n":1}}', (_RAW,), ('"apiKey":"<REDACTED>","n":1}',)),
    Case("json in json", f'{{"arguments": "{{\\"password\\": \\"{_PHRASE}\\", \\"n\\": 1}}"}}', (_PHRASE,), ('\\"n\\": 1',)),
    Case("json thrice", f'\\\\\\"token\\\\\\":\\\\\\"{_RAW}\\\\\\",\\\\\\"n\\\\\\":1', (_RAW,), ('\\\\\\"n\\\\\\":1',)),
    Case("json with quote", f'{{"password": "a\\"{_RAW}", "n": 1}}', (_RAW,), ('"n": 1',)),
    Case("json object", f'{{"credentials": {{"user": "x", "pin": "{_RAW}"}}, "n": 1}}', (_RAW,), ('"n": 1',)),
    Case("escaped object", f'{{\\"token\\": {{\\"x\\": [\\"}}\\", \\"{_RAW}\\"]}}, \\"n\\": 1}}', (_RAW,), ('\\"token\\": <REDACTED>, \\"n\\": 1}',)),
    Case("json list", f'{{"secrets": ["a", "{_RAW}"], "n": 1}}', (_RAW,), ('"n": 1',)),
    Case("json next line", f'"password":\n    "{_RAW}",\n"n": 1', (_RAW,), ('"n": 1',)),
    Case("json cut", f'{{"password": "{_PHRASE}', (_PHRASE,), ()),
    Case("python", f"{{'password': '{_PHRASE}', 'n': 1}}", (_PHRASE,), ("'n': 1",)),
    Case("triple", f'password = """{_PHRASE}\n{_RAW}"""\nn = 1', (_PHRASE, _RAW), ("n = 1",)),
    Case("name and value", f'{{"name": "DB_PASSWORD", "value": "{_RAW}"}}', (_RAW,), ("DB_PASSWORD",)),
    Case("kubernetes", f"- name: API_KEY\n  value: {_RAW}\n- name: N\n  value: one", (_RAW,), ("value: one",)),
    # YAML.
    Case("yaml phrase", f"password: {_PHRASE}\nuser: bob", (_PHRASE, "battery"), ("\nuser: bob",)),
    Case("yaml comment", f"db:\n  password: {_PHRASE}  # rotate\n  port: 1", ("battery",), ("# rotate\n  port: 1",)),
    Case("yaml quoted", f"password: '{_PHRASE}' # rotate", ("battery",), ("# rotate",)),
    Case("yaml flow", f"{{user: bob, password: {_WORD}, port: 1}}", (_WORD,), ("user: bob", "port: 1}")),
    Case("yaml block", f"token: |\n  {_RAW}\n  {_WORD}\nuser: bob", (_RAW, _WORD), ("\nuser: bob",)),
    Case("yaml list", f"- password: {_PHRASE}\n- user: bob", ("battery",), ("- user: bob",)),
    Case("yaml in json", f'"password: {_PHRASE}\\nuser: bob"', ("battery",), ("user: bob",)),
    # Environment, INI, shell.
    Case("aws env", f"AWS_SECRET_ACCESS_KEY={AWS_SECRET}", (AWS_SECRET,), ("AWS_SECRET_ACCESS_KEY=",)),
    Case("export", f"export OPENAI_KEY='{_RAW}' N=1", (_RAW,), ("N=1",)),
    Case("shell quoted", f"PASSWORD='{_PHRASE}' psql -h db", ("battery",), ("psql -h db",)),
    Case("shell prefix", f"PGPASSWORD={_WORD} psql -h db", (_WORD,), ("psql -h db",)),
    Case("ampersand", f"DB_PASSWORD=a&{_WORD}", (_WORD,)),
    Case("ini", f"[db]\npassword = {_PHRASE}\nport = 1", ("battery",), ("port = 1",)),
    Case("suffix", f"API_KEY_PROD={_RAW}\nSECRET_2={_WORD}", (_RAW, _WORD)),
    Case("properties", f"spring.datasource.password={_WORD}", (_WORD,), ("spring.datasource.password=",)),
    Case("npmrc", f"//registry.example/:_authToken={_RAW}\n_auth={_RAW}", (_RAW,)),
    Case("docker", f"ENV API_TOKEN {_RAW}\nENV API_TOKEN={_RAW}x", (_RAW + "x",)),
    Case("netrc", f"machine example.org login bob password {_WORD}", (_WORD,), ("login bob",)),
    # Flags.
    Case("flag", f"mysql --password {_WORD} --port 1", (_WORD,), ("--port 1",)),
    Case("flag equals", f"tool --api-key={_RAW} --port 1", (_RAW,), ("--port 1",)),
    Case("flag quoted", f"tool --password '{_PHRASE}' --port 1", ("battery",), ("--port 1",)),
    Case("argv", f'["tool", "--token", "{_RAW}", "--port", "1"]', (_RAW,), ('"--port", "1"',)),
    Case("curl", f"curl -u bob:{_WORD} https://example.org", (_WORD,), ("-u bob:", "https://example.org")),
    # Code.
    Case("code", f'password = "{_PHRASE}"; n = 1', ("battery",), ("n = 1",)),
    Case("hinted", f'def f(token: str = "{_RAW}", n: int = 1): ...', (_RAW,), ("token: str = ", "n: int = 1")),
    Case("item", f'os.environ["API_KEY"] = "{_RAW}"', (_RAW,), ('os.environ["API_KEY"] = ',)),
    Case("compared", f'if password == "{_PHRASE}":', ("battery",), ("if password == ",)),
    Case("walrus", f'if (token := "{_RAW}"):', (_RAW,)),
    Case("ruby", f"'password' => '{_PHRASE}', 'n' => 1", ("battery",), ("'n' => 1",)),
    Case("sql", f"CREATE USER bob WITH PASSWORD '{_PHRASE}' VALID", ("battery",), ("VALID",)),
    Case("xml", f"<user>bob</user><password>{_PHRASE}</password>", ("battery",), ("</password>", "bob")),
    Case("poor", "PASSWORD=" + "password", ("=password",)),
    # HTTP.
    Case("bearer", f"Authorization: Bearer {_RAW}\nAccept: */*", (_RAW,), ("Authorization: Bearer <REDACTED>\nAccept: */*",)),
    Case("short bearer", "Authorization: Bearer " + "abc", ("abc",)),
    Case("basic", "authorization: Basic " + "Ym9iOmh1bnRlcjI=", ("Ym9iOmh1bnRlcjI",)),
    Case("bare bearer", f"with Bearer {_RAW} it works", (_RAW,), ("with Bearer ", " it works")),
    Case("header json", f'{{"Authorization": "Bearer {_RAW}", "n": 1}}', (_RAW,), ('"n": 1',)),
    Case("header curl", f"curl -H 'Authorization: token {_RAW}' https://example.org", (_RAW,), ("' https://example.org",)),
    Case("x-api-key", f"X-Api-Key: {_RAW}\nn: 1", (_RAW,), ("n: 1",)),
    Case("cookie", f"Cookie: a=1; session={_RAW}; theme=dark\nn: 1", (_RAW,), ("n: 1",)),
    Case("set-cookie", f"Set-Cookie: sid={_RAW}; Path=/\nn: 1", (_RAW,), ("n: 1",)),
    # URLs.
    Case("query", f"https://example.org/?token={_RAW}&z=1#top", (_RAW,), ("?token=<REDACTED>&z=1#top",)),
    Case("query later", f"https://example.org/?a=1&access_token={_RAW}&z=1", (_RAW,), ("a=1", "&z=1")),
    Case("form", f"grant=code&client_secret={_RAW}&z=1", (_RAW,), ("grant=code", "&z=1")),
    Case("form first", f"client_secret={_RAW}&z=1", (_RAW,), ("&z=1",)),
    Case("azure alone", f"AZURE_STORAGE_KEY={AZURE}\nn", (AZURE,), ("AZURE_STORAGE_KEY=", "\nn")),
    Case("tight json with space", f'{{"token":" {_RAW}","n":1}}', (_RAW,), ('"n":1',)),
    Case("userinfo", f"postgres://bob:{_WORD}@db.example.org:5432/app", (_WORD,), ("bob:<REDACTED>@db.example.org:5432/app",)),
    Case("userinfo at", f"mysql://bob:p@{_WORD}@db/app", (_WORD,), ("@db/app",)),
    Case("userinfo only password", f"redis://:{_WORD}@cache:6379/0", (_WORD,), ("@cache:6379/0",)),
    Case("token as user", f"https://{drawn(40, HEX)}@github.com/a/b", (drawn(40, HEX),), ("@github.com/a/b",)),
    Case("slack hook", "https://hooks.slack.com/services/" + f"T0/B0/{_RAW}", (_RAW,), ("hooks.slack.com/services/",)),
    Case("discord hook", "https://discord.com/api/webhooks/" + f"1234/{_RAW}", (_RAW,), ()),
    Case("azure sas", f"https://a.blob.core.windows.net/c?sv=1&sig={_RAW}%3D&se=2", (_RAW,), ("sv=1", "&se=2")),
    Case("aws signed", f"https://b.example.org/k?X-Amz-Signature={drawn(64, HEX)}&z=1", (drawn(64, HEX),), ("&z=1",)),
    # Connection strings.
    Case("ado", f"Server=db;User Id=bob;Password={_WORD};Port=1", (_WORD,), ("User Id=bob", ";Port=1")),
    Case("pwd", f"Server=db;Uid=bob;Pwd={_WORD};", (_WORD,), ("Uid=bob",)),
    Case("azure", f"AccountName=a;AccountKey={AZURE};EndpointSuffix=core", (AZURE,), ("AccountName=a", ";EndpointSuffix=core")),
    Case("service bus", f"Endpoint=sb://a/;SharedAccessKeyName=k;SharedAccessKey={AZURE}", (AZURE,), ("KeyName=k",)),
    Case("aws csv", f"{SHAPES['aws-id']},{AWS_SECRET}", (SHAPES["aws-id"], AWS_SECRET)),
    Case("log", f"INFO login user=bob password={_WORD}, host=x", (_WORD,), ("user=bob", "host=x")),
    Case("log colon", f"INFO login user: bob password: {_WORD} host: x", (_WORD,), ("user: bob", "host: x")),
    Case("said", f"my password: {_PHRASE}", ("battery",), ("my password: ",)),
    # Without a name: commands, statements, Docker.
    Case("mysql", f"mysql -uroot -p{_WORD} shop", (_WORD,), ("mysql -uroot -p<REDACTED> shop",)),
    Case("mysql quoted", f"mysqldump -h db -p'it''s {_PHRASE}' shop", ("it''s", "battery"), ("-p'<REDACTED>' shop",)),
    Case("mysql lines", f"mariadb -u root \\\n  -p{_WORD} shop", (_WORD,), ("-p<REDACTED> shop",)),
    Case("mysql after sql", f'mysql -e "select 1;" -p{_WORD}', (_WORD,), ("select 1;",)),
    Case("mysql in json", f'{{"command": "mysql -p\\"{_PHRASE}\\" shop", "n": 1}}', ("battery",), (' shop", "n": 1}',)),
    Case("mysql argv", f'["mysql", "-uroot", "-p{_WORD}", "shop"]', (_WORD,), ('"shop"]',)),
    Case("sshpass", f"sshpass -v -p '{_PHRASE}' ssh -p 22 host", ("battery",), ("ssh -p 22 host",)),
    Case("sshpass tight", f"sshpass -p{_WORD} ssh host", (_WORD,), (" ssh host",)),
    Case("sshpass argv", f'["sshpass", "-p", "{_WORD}", "ssh", "-p", "22"]', (_WORD,), ('"ssh", "-p", "22"]',)),
    Case("identified", f"CREATE USER bob IDENTIFIED BY '{_PHRASE}' VALID", ("battery",), ("' VALID",)),
    Case("identified small", f"grant all on *.* to 'bob'@'%' identified by \"{_WORD}\";", (_WORD,), ("to 'bob'@'%'",)),
    Case("identified with", f"IDENTIFIED WITH caching_sha2_password BY '{_WORD}'", (_WORD,), ("caching_sha2_password",)),
    Case("identified bare", f"ALTER USER bob IDENTIFIED BY {_WORD};", (_WORD,), (";",)),
    Case("identified escaped", f"IDENTIFIED BY 'a\\'{_WORD}' VALID", (_WORD,), ("' VALID",)),
    Case("identified cut", f"IDENTIFIED BY '{_PHRASE}", ("battery",)),
    Case("set password", f"SET PASSWORD FOR 'bob'@'%' = PASSWORD('{_WORD}');", (_WORD,), ("'bob'@'%'", "');")),
    Case("docker auth", '{"auths": {"r": {"auth": "Ym9iOmh1bnRlcjI="}}, "n": 1}', ("Ym9iOmh1bnRlcjI",), ('"n": 1}',)),
    Case("docker auth escaped", '{\\"auth\\": \\"Ym9iOmh1bnRlcjI=\\"}', ("Ym9iOmh1bnRlcjI",), ('\\"}',)),
    Case("docker identity", f'{{"identitytoken": "{_RAW}"}}', (_RAW,)),
    Case("php", f"define('DB_PASSWORD', '{_WORD}');", (_WORD,), ("define('DB_PASSWORD', '<REDACTED>');",)),
    Case("php spaced", f'define( "AUTH_KEY" , "{_PHRASE}" );', ("battery",), ('" );',)),
    Case("set item", f'localStorage.setItem("token", "{_RAW}")', (_RAW,), ('("token", "',)),
    Case("put in json", f'"define(\\"DB_PASSWORD\\", \\"{_WORD}\\");"', (_WORD,), ('\\");"',)),
    # Other languages.
    *(Case(f"in other words: {name}", f"{name}{sign}{_WORD}\nn: 1", (_WORD,), (f"{name}{sign}<REDACTED>\nn: 1",))
      for name, sign in (
          ("密码", "："), ("密碼", ": "), ("口令", "="), ("パスワード", "："), ("비밀번호", ": "), ("Пароль", ": "),
          ("contraseña", " = "), ("Mot de passe", " : "), ("senha", ": "), ("Kennwort", ": "), ("Password", "："),
      )),
    Case("markdown", f"**Password:** {_WORD}\n`token`: {_RAW}", (_WORD, _RAW), ("**Password:",)),
)  # fmt: skip

KEYS = (
    *(Case(f"{kind or 'pkcs8'}pem", f"see\n{private_key(kind)}\nend", (*BODY,), ("see\n", "\nend"))
      for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")),
    Case("escaped pem", '{"key": "' + private_key("RSA ", "\\n") + '", "n": 1}', (*BODY,), ('"n": 1',)),
    Case("twice escaped pem", private_key("", "\\\\n") + " n", (*BODY,), (" n",)),
    Case("pem in code", private_key("", '\\n"\n  + "'), (*BODY,)),
    Case("one line pem", private_key("", " "), (*BODY,)),
    Case("pem without end", "a\n" + "\n".join(private_key("").split("\n")[:4]) + "\n[truncated]", (*BODY[:3],), ("a\n", "[truncated]")),
    Case("pem cut in a line", private_key("")[:200], (BODY[0], BODY[1], BODY[2][:30])),
    Case("pem without begin", "\n".join(private_key("").split("\n")[2:]) + "\nb", (*BODY[1:],), ("\nb",)),
    Case("two cut pems", private_key("")[:120] + "\n...\n" + private_key("RSA "), (BODY[0], *BODY)),
    Case("pgp", "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + "\n".join(BODY), (*BODY,)),
    Case("encrypted rsa", (BEGIN % "RSA ") + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + "\n".join(BODY), (*BODY,)),
)  # fmt: skip

CASES = (
    *(Case(name, f"use {key} now", (key,), ("use ", " now")) for name, key in SHAPES.items()),
    *ASSIGNED,
    *KEYS,
)

KEPT = (
    "max_tokens: 512",
    "max_token: 512",
    "token_count=12 total_tokens=99 input_tokens: 7",
    '{"max_tokens": 512, "token_count": 12, "usage": {"total_tokens": 3}}',
    "--max-tokens 512 --token-count 3",
    "Reset your password: see the docs for how.",
    "If you forgot the password: click the link.",
    "Passwords must have 12 characters; password rules are in docs/passwords.md.",
    "The secret sauce is patience, and the secret: we measure.",
    "A token is about four characters. Tokens: the unit of cost. Cost per token: 0.002",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c0b0f00a08",
    "password = getpass()",
    "password = getpass.getpass('Password? ')",
    'api_key = os.environ["API_KEY"]',
    'api_key=os.environ.get("API_KEY"), n=1',
    "const token = process.env.TOKEN;",
    "const password = req.body.password;",
    "def login(user: str, password: str, token: str | None = None) -> Token:",
    "fn login(token: &str, secret: Option<String>) {",
    "interface Login { password: string; token?: string; secret: string | null }",
    "token: Token",
    "connect(user=user, password=password, token=token)",
    'url = f"https://example.org/?token={token}&z=1"',
    "password: ${DB_PASSWORD}",
    "password: {{ vault.password }}",
    "PASSWORD=$PASSWORD npm start",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "api_key: <your key here>",
    "export OPENAI_API_KEY=<your-key>",
    "password: ********",
    'password: ""',
    '"password": null, "has_token": true',
    "PWD=/home/bob OLDPWD=/tmp",
    "Unexpected token '<' at 1:7",
    'primary_key: id, foreign_key="users.id", sort_key = name',
    "cache_key=abc123 public_key=def456",
    "next_page_token: abc123",
    "eos_token: </s>",
    "Basic authentication or bearer tokens",
    "https://example.org:8080/?q=bob@example.org",
    "http://localhost:5175/ingest",
    "mail bob@example.org at 10:30",
    "pip install sk-learn-compatible-estimators",
    "get your API key: https://example.org/account/api-keys",
    "usage: tool --token TOKEN --password PASSWORD",
    "pass --token to the tool, or --password with a file",
    "tests: pass: 12, fail: 3",
    "for token in tokens: print(token)",
    "items.map(token => { return token.text })",
    "if token == other.token: pass",
    "case 'password': return True",
    'schema: {"token": {"type": "string"}}',
    "a file that begins with " + BEGIN % "RSA " + " is a key",
    "AKIA is how the ids of AWS begin",
    'token: "{{ .Env.GITHUB_TOKEN }}"',
    "class User { fun validate(token: String): Boolean { return true } }",
    "a basic CLAUDE.md, basic JavaScript, Basic authentication",
    'fmt.Errorf("look up credentials: %w", err)',
    "for _, token := range boundary.FindAllString(content, -1) {",
    "token := boundary.FindAllString(content, -1)",
    "self.password = password",
    "headers = {authorization: `Bearer ${config.apiKey}`, accept: 1}",
    "AUTHORIZATION: basic ***",
    "an interactive `Username:`/`Password:` prompt, and a 'Password:' label",
    "the username position (https://<token>@host/...), which <b>url</b> names",
    "integrity sha512-" + "A" * 86 + "==",
    "const STORAGE_KEY = 'todos'",
    "mysql -u root -p shop",
    'mysql -u root -p$PASSWORD shop; mysql -p"$PASSWORD"; mysql -p<password>; mysqldump -p${PASSWORD}',
    "docker run --name mysql -p3306:3306 -p127.0.0.1:3307:3306/tcp -d mysql",
    "find /var/lib/mysql -print; find / -name mysql -perm 700 -prune",
    "make mysql | grep -pattern; cat mysql; mkdir -pv x",
    "sshpass -e ssh -p 2222 host; sshpass -f file ssh -p 22 host; sshpass -p $PASSWORD ssh host",
    "Each row is identified by 'id', and what is identified by name stays",
    "IDENTIFIED BY ?; IDENTIFIED BY :password; IDENTIFIED BY %s; IDENTIFIED BY ${PASSWORD}; IDENTIFIED BY RANDOM PASSWORD",
    '{"auth": "required", "auth": "oauth2", "auth": "bm8gY29sb24gaGVyZQ=="}',
    "define('DB_PASSWORD', getenv('DB_PASSWORD')); os.environ.get('API_KEY', 'none')",
    "密码：请输入您的密码",
    "a resenha: bom livro; contraseñas: dos",
    "contraseña = getpass()",
)
