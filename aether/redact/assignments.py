"""Secrets recognised by their context: under a secret's name, and where a person says one.

Names: a key is split into words (`accessToken`, `ACCESS_TOKEN` and `access-token` are the same two), and its last
words decide: `api_key` holds a secret, `api_key_url` does not, `token` does, `max_token` and `token_count` do not.

Assignments (`password = …`, `"api_key": "…"`, `--token …`, `<secret>…</secret>`): a search finds a word of a secret's
name and reads the whole name around it, the sign after it, and the value as far as it goes: to its closing quote, the
end of a YAML line, the next parameter of a URL. Code that fetches a secret, type hints, templates and prose stay.

Every pattern looks a bounded distance ahead, so the time is linear in the length of the text. Secrets that are
recognised by their own form are in `forms`, those in commands and SQL in `commands`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aether.redact.forms import PLACEHOLDER, after_words, look, replaced
from aether.text.regex import lazy
from aether.tuples import NamedTuple

_WORDS = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A key whose last word is one of these holds a secret.
_SECRET = frozenset(
    "password passwort passwd passphrase passcode pwd secret secrets credential credentials authorization cookie "
    "cookies apikey authkey authtoken accesstoken refreshtoken idtoken sessiontoken apitoken bottoken secretkey "
    "accesskey privatekey accountkey signingkey encryptionkey sharedaccesskey connectionstring jwt identitytoken "
    "registrytoken senha kennwort pw psw pswd passwrd passkey creds cred credentialsjson mnemonic seedphrase totp "
    "wachtwoord heslo sifre clave mdp motdepasse zugangsdaten geheimnis salasana adgangskode passord parola parole "
    "pincode passwortphrase losenord jelszo lozinka phpsessid jsessionid stringdata dockerconfigjson psk".split()
)
# "Password" in other alphabets or in several words; a name that ends in one of these is a secret's.
FOREIGN = (
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "пароль",
    "contraseña",
    "mot de passe",
    "lösenord",
    "hasło",
    "şifre",
    "jelszó",
    "schlüssel",
    "mật khẩu",
    "รหัสผ่าน",
    "كلمة المرور",
    "סיסמה",
    "κωδικός",
    "पासवर्ड",
)
# So does one word that ends in these, such as `userpassword` and `PGPASSWORD`.
_SECRET_ENDS = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "secret",
    "secretkey",
    "privatekey",
    "token",
    "pass",
    "userpwd",
    "dbpwd",
    "rootpwd",
    "userpw",
    "dbpw",
    "rootpw",
    "adminpw",
    "bindpw",
    "passwort",
)
# Words that end so, and are no names of secrets.
_OTHER_WORDS = frozenset(
    "pass bypass compass encompass surpass trespass overpass underpass token subtoken nontoken pretoken".split()
)
# `<one of these>_key`: the services are those whose keys are most frequent.
_KEY_OF = frozenset(
    "api access private secret signing encryption account master auth service subscription ssh deploy shared "
    "admin app application consumer client crypto hmac aes host function functions licence license webhook "
    "openai anthropic claude gemini google azure aws mistral cohere groq deepseek openrouter together replicate "
    "huggingface hf stripe twilio sendgrid mailgun datadog sentry algolia pinecone tavily serp supabase firebase "
    "cloudflare github gitlab slack notion linear telegram discord alchemy infura etherscan binance kraken coinbase "
    "newrelic honeycomb grafana pagerduty opsgenie bugsnag rollbar amplitude segment mixpanel posthog intercom zendesk "
    "hubspot salesforce airtable asana jira trello figma contentful sanity shopify square plaid paypal braintree adyen "
    "mailchimp postmark sparkpost brevo resend vonage nexmo plivo messagebird pusher ably mapbox maps here weather "
    "openweather weatherapi newsapi rapidapi deepl elevenlabs assemblyai deepgram voyage jina exa perplexity fireworks "
    "cerebras xai grok nvidia wandb langsmith langfuse helicone qdrant weaviate zilliz chroma snyk sonar codecov "
    "heroku vercel netlify render railway fly digitalocean linode vultr hetzner ovh scaleway fastly akamai bunny "
    "backblaze b2 wasabi minio r2 dropbox box imgur giphy unsplash pexels tmdb omdb spotify twitch youtube twitter "
    "facebook instagram linkedin reddit tiktok jwt session cookie root rsa ecdsa ed25519 tls ssl pgp gpg bearer "
    "pulumi doppler vault consul nomad artifactory nexus nuget npm pypi".split()
)
# `<one of these>_token` counts, pages or marks; it gives no access.
_TOKEN_OF = frozenset(
    "max min num n total count per next page continuation previous prev sync cancel cancellation eos bos pad unk mask "
    "sep cls special stop start end first last sampled generated image text input output prompt new invalid "
    "unexpected".split()
)
_TOKENS_OF = frozenset("access auth api refresh secret bearer personal".split())
# Suffixes of a secret's name: `API_KEY_PROD`, `password_2`, `password_hash`.
_MODIFIERS = frozenset(
    "value values hash base64 b64 plain plaintext str new old prod production dev test staging live primary "
    "secondary backup current confirm confirmation again raw pem base".split()
)
# Names whose answer stays in memory.
_CACHED_NAMES = 4096
# `<any other>_key`, `_auth`, `_pat` hold a secret if their value is drawn at random, but not after one of these.
_DOUBTFUL = frozenset(
    "key keys auth pat sas dsn salt pepper pass pin otp signature nonce hmac bearer license licence code sid".split()
)
_NO_KEY_OF = frozenset(
    "public primary foreign sort partition cache idempotency dedupe dedup object group row column lookup hash index "
    "unique composite natural surrogate translation i18n config map dict host known storage etag request trace span "
    "react query session_id project build commit content file artifact image merge checksum digest s3 redis status "
    "error exit country zip postal language source reason".split()
)


@lru_cache(maxsize=_CACHED_NAMES)
def is_secret_name(key: str) -> bool:
    """Return whether a value under `key` is a secret.

    >>> [key for key in ("apiKey", "DB_PASSWORD_2", "max_tokens", "token_count", "token_type") if is_secret_name(key)]
    ['apiKey', 'DB_PASSWORD_2']
    """
    words = [word.lower() for word in _WORDS.findall(key)]
    while len(words) > 1 and (words[-1] in _MODIFIERS or words[-1].isdigit()):
        words.pop()
    if key.lower().endswith(FOREIGN):
        return True
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if before == "existing":  # `existingSecret: name`
        return False
    if last in _SECRET or key.lower().endswith("key-data") or key.lower() in ("_auth", "auth_header"):
        return True
    if last.endswith(_SECRET_ENDS) and last not in _OTHER_WORDS:
        return True
    pairs = {
        "token": before not in _TOKEN_OF,
        "tokens": before in _TOKENS_OF,
        "key": before in _KEY_OF,
        "string": before in ("connection", "conn", "secret"),
        "pat": before in _KEY_OF,
        "pass": bool(before),  # `pass` alone counts the tests that passed
    }
    return pairs.get(last, False)


@lru_cache(maxsize=_CACHED_NAMES)
def may_be_secret_name(key: str) -> bool:
    """Return whether a value under `key` is a secret if it looks drawn at random: `travis_key`, `REGISTRY_AUTH`.

    >>> [key for key in ("TRAVIS_KEY", "cache_key", "primaryKey", "keyboard") if may_be_secret_name(key)]
    ['TRAVIS_KEY']
    """
    words = [word.lower() for word in _WORDS.findall(key)]
    while len(words) > 1 and (words[-1] in _MODIFIERS or words[-1].isdigit()):
        words.pop()
    if not words or words[-1] not in _DOUBTFUL:
        return False
    if len(words) == 1:
        return words[0] in ("pass", "pat", "sas", "bearer")
    return not any(word in _NO_KEY_OF for word in words)


# A run of letters and digits, and the least of it that counts as drawn at random.
_DRAWN = lazy(r"[A-Za-z0-9_+/=~!@#%^&*-]{6,512}")
_LEAST_DRAWN = 16


def is_drawn(value: str, *, least: int = _LEAST_DRAWN) -> bool:
    """Return whether `value` looks drawn at random: letters and digits mixed, no path, no words.

    >>> is_drawn("zz81kd9xq04mfha2"), is_drawn("src/app/models/user_2"), is_drawn("release-2024-05-01")
    (True, False, False)
    """
    if not _DRAWN.fullmatch(value) or is_template(value):
        return False
    runs = re.findall(r"[A-Za-z0-9]+", value)
    mixed = sum(
        len(run)
        for run in runs
        if any(map(str.isdigit, run)) and any(map(str.isalpha, run)) and not _NUMBERED.fullmatch(run)
    )
    return mixed >= least * 3 // 4 or (mixed > 0 and len(value) >= 2 * least)


# `utf8`, `v2`, `sha256`, `T10`: a word with a number.
_NUMBERED = lazy(r"[A-Za-z]{1,10}[0-9]{1,3}|[0-9]{1,6}[A-Za-z]{1,5}")

# Each of `_STEMS` holds one of these signs: a text without any compiles no pattern.
_PARTS = "pass pw psw secret token key cred auth cookie conn jwt psk _pat _sas _dsn _salt _pepper _pin _otp _hmac _licen _sid".split()
# Searched in small letters.
_STEMS = (
    r"pass(?:wor[dt]|wr?d|phrase|code|key|(?![a-z]))|ps?wd?(?![a-z])|secret(?:[ _-]key)?|token|api[ _-]?key"
    r"|access[ _-]key|private[ _-]key|keys?(?![a-z])|creds?(?![a-z])|credential|authorization|cookie|connection[ _-]?string"
    r"|conn_?str|jwt|auth(?![a-z])|psk(?![a-z])|_(?:pat|sas|dsn|salt|pepper|pin|otp|hmac|licen[sc]e|sid)(?![a-z])"
)
# Rare ones are searched only in texts that hold one of them, or the last word of one.
_RARE_WORDS = (
    *"senha kennwort wachtwoord heslo sifre clave mdp motdepasse zugangsdaten geheimnis salasana adgangskode parola pincode".split(),
    *"losenord jelszo lozinka mnemonic seedphrase totp phpsessid jsessionid dockerconfigjson stringdata pswd passord parole".split(),
    *FOREIGN,
)
_STEM = lazy(_STEMS)
_RARE = tuple((word, word.rpartition(" ")[2]) for word in _RARE_WORDS)
_RARE_ASCII = tuple(one for one in _RARE if one[0].isascii())
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
# Longer runs of such characters are data, not names.
_LONGEST_NAME = 64
_REST_OF_NAME = lazy(r"[A-Za-z0-9_.-]{0,64}")

_SIGN = lazy(r"""(?x)(?:\\{0,16}["'`])?(?:\]|\*\*)?(?:
      (?:,|[ ]?,?(?:\s|\\{1,4}n))\s{0,40}\\{0,16}["']?value\\{0,16}["']?\s{0,4}[:=]\s{0,4}     # {"name": "API_KEY", "value": …}, in JSON and in YAML
    | [ \t]{0,40}(?P<sign>={1,3}>?|!={1,2}|:=|[?]?:(?!:)|：)(?P<space>[ \t]{0,40}(?:(?:\r?\n|\\{1,4}n)[ \t]{0,40}(?=\\{0,16}["']))?)
    )""")
_FLAG_SIGN = lazy(r"""(?P<space>[ \t]{1,8})|\\{0,16}["'],\s{0,40}(?=\\{0,16}["'])""")
# Setters take the name and the value: `define('DB_PASSWORD', 'x')`, `localStorage.setItem("token", "x")`.
_SETTER = lazy(
    r"""(?i)(?:define|\bset(?:_?env|default|item|header|requestheader|property|_?var)?|addheader)\(\s{0,8}\\{0,16}["']\Z"""
)
_NEXT_ARGUMENT = lazy(r"""\\{0,16}["']\s{0,8},\s{0,40}(?=\\{0,16}["'])""")
_QUOTED_NEXT = lazy(r"""[ \t]{1,4}(?=["'])""")
# `os.getenv("API_KEY", "x")`: a default, which is a secret only if it looks like one.
_GETTER = lazy(r"""(?i)(?:\benv|getenv|environ\.get|env\.fetch)\(\s{0,8}\\{0,16}["']\Z""")
# Words before a name and its value: `ENV API_TOKEN x`, `#define API_TOKEN "x"`, `yarn config set npmAuthToken x`.
_GIVER = lazy(r"(?:^|[\s\"'+]|\\n)(?:ENV|setx|#[ ]?define|config set)[ \t]{1,8}\Z")
# `var password string = "x"` in Go, `<property name="password">x</property>` in XML.
_TYPED = lazy(r"[ ](?:string|String|str|text|CString)[ ]:?=[ ](?=[\"'`])")
_ATTRIBUTE = lazy(r"""["'][ ]?>(?:\s{0,8}<value>)?(?=[^<\s][^<\n]{0,400}</)""")
# `token: str = ` before the value of a parameter.
_HINT = lazy(r"[A-Za-z_][\w.]{0,40}(?:\[[\w., |]{0,60}\])?(?:[ ]\|[ ]\w{1,20}){0,3}[ ]=[ ]")
_QUOTE = lazy(r"""[frbFRB]{0,2}(?P<slashes>\\{0,16})(?P<quote>\"{3}|'{3}|["'`])""")
_ESCAPED_TRIPLE = lazy(r"""[frbFRB]{0,2}((\\{1,16}["'])\2\2)""")
_BLOCK = lazy(
    r"[|>][0-9+-]{0,2}[ \t]*\r?\n(?P<indent>[ \t]+)[^\n]*(?:\n(?:(?P=indent)[^\n]*|[ \t]*(?=\r?\n)))*"
)
_SLASHES = lazy(r"\\{0,16}")
_SCHEMA = lazy(r"""\{\s{0,40}["']?(?:type|description|title|\$ref|anyOf|enum)["']?\s{0,4}:""")
# A secret's object longer than this, and the objects after so many that never close, are skipped.
_LONGEST_OBJECT = 1 << 16
_UNCLOSED_OBJECTS = 16
# Code and prose are recognised within this distance; the text behind is not scanned again for each name before it.
_LONGEST_LOOK = 1 << 10

_LINE_END = r"""\r|\n|\\+[nr]|\\*["'`](?=[\s,;)\]}]|$)|$"""
_SCALAR_END = rf"""\s\#|{_LINE_END}"""
_END_OF_LINE, _END_OF_SCALAR = lazy(_LINE_END), lazy(_SCALAR_END)
_END_WITHIN_LINE = lazy(
    rf"""[,;|)\]}}](?=[\s,;:)\]}}]|$)|[,;](?=["']?[\w. -]{{1,40}}["']?\s?[:=])|(?=[ \t][\w-]{{1,40}}[:=])|"""
    rf"""{_SCALAR_END}"""
)
_END_OF_WORD = lazy(r"""[\s"'`]|[;,&](?=[ ]?[A-Za-z_][\w .-]{0,40}=)|\\+[nr]|\\+["']|$""")
_END_OF_PARAMETER = lazy(r"""[\s&;\#"'<>`]|\\+[nr"']|$""")
_END_OF_FIELD = lazy(r"""[\s&;"'<>`]|\\+[nr"']|$""")  # of a connection string
_SCHEME = lazy(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey)[ ]{1,4}")
_ELEMENT = lazy(r"[^<]{0,4096}(?=</)")
_CLOSERS = ",;)]}>"
# Allowed before a name at the start of a line.
_LINE_START = lazy(r"""(?:^|\n|\\n)[ \t>*#/|+$-]{0,40}(?:(?:export|set|ENV|const|let|var|env:)[ ])?$""")
_LOOK_BACK = 80

_NOTHING_YET = frozenset(
    "none null nil undefined true false str string bytes int integer float number bool boolean any optional object "
    "secretstr char void unknown text varchar uuid required same-origin include omit accept".split()
)
_TYPE = lazy(
    r"(?i)&?(?:mut )?(?:optional|str|string|bytes|int|number|any|bool|boolean|secretstr|option|promise|list|object)\b"
    r"(?:[\[<][^\n]{0,60}[\]>])?(?: ?\| ?\w{1,20}){0,3}(?: = (?:none|null|undefined))?[,;)\]}:>]{0,3}"
)
_TEMPLATE = lazy(
    r"[$#]\{|\$\(|\?(?:[ ,)]|$)|\$[0-9]{1,2}(?![\w$])|\$[A-Za-z_][A-Za-z0-9_]*$|\$env:|\{\{|\{%|<%|\{\{?\s?[.$A-Za-z_][\w. ]*\}|%\(|%[A-Za-z_]{2,40}%$|%[-+#0-9.]{0,4}[a-zA-Z]$|@@?[A-Za-z_.-]{3,40}@@?$"
    r"|</?[A-Za-z][\w ./'|:-]*>$|\[(?:REDACTED|[A-Za-z][a-z -]{2,40}|[A-Z_ -]{3,40})\]|(?:\*+|[xX]{3,}|[.•…_?-]{3,})$|(?i:\(?(?:redacted|masked|hidden|omitted|removed|sanitized|not set|unset|empty)\)?$)|https?://"
    r"|(?i:(?:your|my|some|the|insert|enter|put|add|paste|replace|change)(?:[_ -][a-z]{1,20}){1,6}$)|(?i:change_?me!?$|placeholder$|todo$|tbd$|fixme$|n/a$)|(?:op|vault|awssm|gcpsm|ref\+\w+|secret|arn:aws[\w-]*|projects)[:/]/?/?[\w./@:-]+$|!(?:Ref|Sub|GetAtt|vault|Secret|ENC)\b|ENC\[|\$ANSIBLE_VAULT"
)
_ANGLES = lazy(r"<[A-Za-z][\w ./'|:-]{0,60}>(?=[\s,;\"'`]|$)")
_CALL = lazy(
    r"(?:await |new |not |[A-Za-z_][\w.]{0,80} (?:or|and|\?\?|\|\|) )?[A-Za-z_][\w.]{0,80}(?:\((?:[^\n]{0,200}\)|[ \t]*(?:\n|$))|\[[^\n]{0,200}\])"
)
_LITERAL = lazy(r"&\w{1,60}\{")  # `&helperCreds{user: user}` in Go
_STATEMENT = lazy(
    r"(?:return|throw|raise|yield|await|print|pass|break|continue|if|not|lambda|function|async|range)\b"
)
_DOTTED = lazy(r"([A-Za-z_]\w{0,40})\??(?:\.[A-Za-z_]\w{0,40})+[,;)\]}:]{0,3}")
_ROOTS = frozenset(
    "self cls this os sys process env config cfg settings args kwargs request req ctx context options opts params "
    "event credentials secrets data body user client session response res result".split()
)
_IDENTIFIER = lazy(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_PATH = lazy(r"[~./]|[A-Za-z]:\\|\\\\")
# First words of a sentence about passwords ("your password: see the docs"), rarely of a passphrase.
_PROSE = frozenset(
    "see use click go it this that these those the a an is are was be you we they i please check run if to and or for "
    "with when which what how why where do don't not never always make set get your our in on at as from by must "
    "should can will no only option flag".split()
)
# So are these in German, in any place, with more words after them.
_GERMAN_PROSE = frozenset(
    "see read ask wird werden wurde ist sind muss müssen siehe steht bitte nicht kein keine der die das wie noch".split()
)
_RESOURCE = lazy(r"\b(?:arn|urn):[\w:/.-]{0,80}\Z")
# Parameters of an address that hold a secret if they are drawn at random.
_PARAMETERS = frozenset({"key", "auth", "sid", "ticket"})
_KEY_FILE = lazy(r"[\w./~$-]*/[\w.-]+\.(?:key|pem|crt|cer|p12|pfx|jks|json|pub|asc|gpg)$")
_AFTER_A_WORD = lazy(r"(?:^|\s)[a-z']{1,20}[ \t]{1,4}$")
_COUNTED = lazy(r"(?i)(?:^|\W)(?:per|each|every|next|first|last|unexpected)[ \t]{1,4}$")


class _Place(NamedTuple):
    """The place of a secret's name, and of the value after it: the sign between them, and whether with a space."""

    text: str
    start: int
    end: int
    value: int
    sign: str
    spaced: bool


def without_assigned(text: str, joined: str | None = None) -> str:
    """Return `text` with every value under a secret's name replaced; the names stay.

    `joined` are the words of `text`, as `look` has them, or of the text that it was made of.

    >>> without_assigned("login --password hunter2 --retries 3, max_tokens: 512")
    'login --password <REDACTED> --retries 3, max_tokens: 512'
    """
    seen = look(text)
    folded, joined = seen.folded, seen.joined if joined is None else joined
    if not seen.signs and joined == seen.joined and joined.isascii():
        return text
    parts: list[str] = []
    done, at, unclosed = 0, 0, 0
    rare = [word for word, last in (_RARE_ASCII if joined.isascii() else _RARE) if last in joined]
    if not rare and seen.signs.isdisjoint(_PARTS):
        return text
    stem = re.compile(f"{_STEMS}|{'|'.join(rare)}") if rare else _STEM
    while found := stem.search(folded, at):
        start, at = _name(text, found)
        name = text[start:at]
        certain = is_secret_name(name)
        doubtful = may_be_secret_name(name) or (
            name.lower() in _PARAMETERS and text[start - 1 : start] in ("?", "&")
        )
        place = _place(text, start, at) if certain or doubtful or name == "--key" else None
        if place is None or _is_part(place):
            continue
        start, end = _extent(place, objects=certain and unclosed < _UNCLOSED_OBJECTS)
        if not certain and not _is_likely(name, text[start:end]):
            continue
        if place.sign == "default" and not _is_password(text[start:end]):
            continue
        unclosed += end < start
        if start < end and text[start:end] != PLACEHOLDER:
            parts += [text[done:start], PLACEHOLDER]
            done = end
        at = max(at, end)
    return "".join([*parts, text[done:]])


def _is_part(place: _Place) -> bool:
    """Return whether the name is a part of a resource's name, or of a shell's `${NAME:-default}`."""
    text, start = place.text, place.start
    if text[start - 2 : start] == "${" and place.sign == ":":
        default = text[place.end : place.end + _LOOK_BACK].partition("}")[0].lstrip(":-=?+")
        return not _is_password(default)
    return (
        text[start - 1 : start] == ":"
        and _RESOURCE.search(text, max(0, start - _LOOK_BACK), start) is not None
    )


def _is_likely(name: str, value: str) -> bool:
    """Return whether `value` under a doubtful `name` is a secret; `pass=…` and `auth=bob:…` need less."""
    short = name.lower().rpartition("_")[2].endswith(("pass", "pin", "auth", "otp", "pepper", "salt"))
    before, colon, after = value.partition(":")
    if colon and short and _IDENTIFIER.fullmatch(before) and len(after) > 3 and " " not in after:
        return not is_template(after) and not after.startswith("/")
    if name.lower() == "pass":
        return len(value) > 5 and not value[0].isdigit() and any(map(str.isdigit, value)) and " " not in value
    return is_drawn(value, least=6 if short else _LEAST_DRAWN)


# What a person says: "the password for staging is x", "das Passwort lautet x", "use password x".
# Every branch starts with a letter, so that a search skips all others.
_NOUN = (
    r"password|passphrase|passcode|passwort|passwd|pass|pwd|pw|kennwort|pin|secret[ -]?key|secret|credentials|creds|zugangsdaten"
    r"|contraseña|senha|wachtwoord|mot de passe|token|api[ -]?key|access[ -]?key|key|api[ -]?schlüssel|schlüssel"
)
_SAYS = r"(?:\||(?:was|has been|is|wurde|habe ich|haben wir)(?:[ ]\w{2,12})?[ ](?:to|auf)|is|was|are|ist|war|lautet|lauten|sind|est|es|é|è|to|=|->|→|:)(?:[ ](?:now|jetzt|set to))?:?"
_SAID = lazy(
    rf"""(?P<noun>{_NOUN})(?:(?P<of>[ ](?:[0-9]{{1,2}}\b|(?:is |was )?(?:generated|created|reset|set)|for|between|of|to|on|in|at|für|von|vom|zum|am|im|auf|der|de|del|du|do)\b[^\n.;:=]{{0,60}}?)?[ "'`]{{0,2}}(?P<says>(?<=[ "'`]){_SAYS}|:)|:)?[ ](?P<quote>["'`(“„]{{0,2}})(?P<said>[^\s"'`”“]{{4,128}})"""
)
# How each match of it starts: "passed" and "keys" are no nouns of secrets, and many texts have no other.
_SAID_STARTS = tuple(
    noun.replace("[ -]?", joint) + sign
    for noun in _NOUN.split("|")
    for joint in ("", " ", "-")
    for sign in " :\"'`"
)
# The words, in small letters, where each pattern is tried.
_NOUNS = "pass pw kennwort pin secret cred zugangsdaten contrase senha wachtwoord mot token api access key schl".split()
_PAIRED = "log sign cred zugangsdaten basic anmelden user".split()
_PAIR = lazy(
    r"""(?:log[ -]?in|logon|sign in|creds|credentials|zugangsdaten|basic auth|anmelden|user(?:name)?[ ]?/[ ]?pass(?:word)?)\b[^\n]{0,24}?[\s:]["'`]?[\w.@+-]{2,60}["'`]?(?:[ ]?[/:][ ]?|[ ](?:und|and)[ ])["'`]?(?P<said>[^\s"'`/:]{6,128})"""
)
# How each match of it starts: "user" and "log" are in many texts.
_PAIR_STARTS = (
    "login", "log in", "log-in", "logon", "sign in", "cred", "zugangsdaten", "basic auth", "anmelden", "user/", "user /",
    "username/", "username /",
)  # fmt: skip
_SYMBOLS = frozenset("!@#$%^&*+?~=")
_UNIT = lazy(
    r"(?i)[ -]?(?:char|digit|byte|bit|letter|symbol|word|time|day|hour|minute|second|week|month|token|%|zeichen|ziffern|stellen)"
)


def without_said(text: str) -> str:
    """Return `text` without the passwords and keys that its prose names.

    >>> without_said("The password for staging is Tr0ub4dor&3, the token is expired.")
    'The password for staging is <REDACTED>, the token is expired.'
    """
    spans = []
    seen = look(text)
    for words, pattern, starts, accepts in (
        (_NOUNS, _SAID, _SAID_STARTS, _is_said),
        (_PAIRED, _PAIR, _PAIR_STARTS, lambda _, value: _is_password(value)),
    ):
        for found in after_words(seen.folded, seen, words, pattern, starts):
            start = found.start()
            escaped = text[start - 2 : start] in ("\\n", "\\t")
            joined = text[start - 1 : start] == "-" and text[start - 2 : start - 1].isalpha()  # WLAN-Passwort
            if text[start - 1 : start] in _NAME_CHARS and start and not escaped and not joined:
                continue
            at = found.start("said")
            value = text[at : found.end("said")].rstrip(".,;:?)]}…")
            if accepts(found, value) and not _UNIT.match(text, at + len(value)):
                spans.append((at, at + len(value)))
    return replaced(text, spans)


def _is_said(found: re.Match[str], value: str) -> bool:
    if PLACEHOLDER in value or (not found["says"] and found["of"]):
        return False
    if found["noun"].endswith(("key", "token", "schlüssel")):
        return is_drawn(value, least=12)
    quoted, says = bool(found["quote"]), found["says"]
    if found["noun"] == "pin" and found.string[found.end("noun")] == ":" and value.isdigit():
        return len(value) > 3
    if says and value.isdigit():
        return len(value) > 3 and says.lower() != "to"
    numbered = _NUMBERED.fullmatch(value)
    return (
        _is_password(value) and (bool(says) or quoted or not numbered) and not (numbered and len(value) < 6)
    )


def _is_password(value: str) -> bool:
    """Return whether `value` looks like a password: letters with digits or signs, and no path, call or name."""
    if (
        is_template(value)
        or value[:1] in "/.-$<{[(%@})]"
        or any(sign in value for sign in ("(", "[", "://", "=", "`", "\\", "{"))
    ):
        return False
    if ("/" in value and value.count("/") > 1) or _DOTTED.fullmatch(value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    mixed = re.search(r"[a-z][A-Z]|[A-Z][a-z]*[A-Z]", value) is not None
    signs = not _SYMBOLS.isdisjoint(value.rstrip("!?"))
    if "_" in value or value.count("-") > 1:
        return letters and digits and (mixed or signs or (value[:1].isupper() and value != value.upper()))
    return len(value) > 5 and letters and (digits or (signs and len(value) > 7))


def is_template(value: str) -> bool:
    """Return whether `value` is a template for a secret: `${PASSWORD}`, `<your password>`, `****`.

    >>> is_template("$DB_PASSWORD"), is_template("hunter2")
    (True, False)
    """
    return bool(_TEMPLATE.match(value))


def _name(text: str, found: re.Match[str]) -> tuple[int, int]:
    start = found.start()
    least = max(0, start - _LONGEST_NAME)
    while start > least and text[start - 1] in _NAME_CHARS:
        start -= 1
    if start < found.start() and text[start] in "nrt" and text[start - 1 : start] == "\\":
        start += 1  # an escaped newline, not a letter of the name
    rest = _REST_OF_NAME.match(text, found.end())
    return start, rest.end() if rest else found.end()


def _place(text: str, start: int, end: int) -> _Place | None:
    """Return the start of the name's value, None without a value."""
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return _Place(text, start, end, end + 1, ">", spaced=False)
    if text[start] == "-" and (flag := _FLAG_SIGN.match(text, end)):
        return _Place(text, start, end, flag.end(), "--", spaced=False)
    if sign := _SIGN.match(text, end):
        spaced = bool(sign["space"]) or text[end : end + 1] in (" ", "\t")
        return _Place(text, start, end, sign.end(), sign["sign"] or ":", spaced)
    before = text[max(0, start - _LOOK_BACK) : start]
    argument = _NEXT_ARGUMENT.match(text, end)
    flag = _FLAG_SIGN.match(text, end)
    for found, mark, is_spaced in (
        (_TYPED.match(text, end), "=", True),
        (_ATTRIBUTE.match(text, end), ">", False),
        (flag and flag["space"] and _GIVER.search(before) and flag, "--", False),
        (argument and _GETTER.search(before) and argument, "default", False),
        (argument and _SETTER.search(before) and argument, ",", False),
        (text[start:end].lower().startswith("passw") and _QUOTED_NEXT.match(text, end), "", True),
    ):
        if found:
            return _Place(text, start, end, found.end(), mark, is_spaced)
    return None


def _extent(place: _Place, *, objects: bool) -> tuple[int, int]:
    """Return the start and the end of the value: equal if it is not a secret, -1 as the end if it never closes."""
    if place.sign == ":" and (hint := _HINT.match(place.text, place.value)):
        place = place._replace(value=hint.end())
    text, at = place.text, place.value
    if block := _BLOCK.match(text, at):
        return block.end("indent"), block.end()
    if triple := _ESCAPED_TRIPLE.match(text, at):
        end = text.find(triple[1], triple.end())
        return triple.end(), end if end >= 0 else len(text)
    if quote := _QUOTE.match(text, at):
        return _quoted(place, quote)
    if "==" in place.sign or "!" in place.sign or place.sign in ("=>", "", "?:"):
        return at, at  # compared, not given; an arrow function; a type
    if text[at : at + 1] in ("{", "[") and not _TEMPLATE.match(text, at):
        return _object(place, look=objects)
    return _unquoted(place)


def _quoted(place: _Place, quote: re.Match[str]) -> tuple[int, int]:
    text, at = place.text, place.value
    if text[place.end : place.end + 1] == place.sign == ":":
        ends = text[quote.end() : quote.end() + 1] in ("", " ", ",", ".", ")", ";", "\n")
        if text[place.start - 1 : place.start] == quote["quote"] or (ends and not place.spaced):
            return at, at  # the quote closes one that was opened before the name: at the `Password:` prompt
    start, end = _after_scheme(place, quote.end()), _closing(text, quote)
    if quote["quote"] == "`" and place.sign == "=" and not place.spaced and " " in text[start:end]:
        return start, start  # the output of a command
    value = text[start:end]
    return (start, start) if value.lower() in _NOTHING_YET or is_template(value) else (start, end)


def _unquoted(place: _Place) -> tuple[int, int]:
    text, at = place.text, place.value
    if not text[place.start : place.end].isascii() and not text[at : at + 1].isascii():
        return at, at  # 密码：请输入 - more words about passwords
    at = _after_scheme(place, at)
    whole = end = _end(place, at + _LONGEST_LOOK)
    if end > at + _LONGEST_LOOK - _LOOK_BACK and not _is_no_secret(place, text[at:end], at, ""):
        whole = end = _end(place, len(text))
    while end > at and (text[end - 1] in _CLOSERS or text[end - 1].isspace()) and text[at:end] != PLACEHOLDER:
        end -= 1
    kept = any(_is_no_secret(place, text[at:stop], at, text[stop : stop + 1]) for stop in (whole, end))
    return (at, at) if kept else (at, end)


def _after_scheme(place: _Place, at: int) -> int:
    """Return the start of the credentials of an Authorization header: after `Bearer `, which stays."""
    scheme = _SCHEME.match(place.text, at)
    named = place.text[place.start : place.end].lower().endswith("authorization")
    return scheme.end() if scheme and named else at


def _closing(text: str, quote: re.Match[str]) -> int:
    """Return the end of the string that `quote` opens: its closing quote, or the end of its line."""
    slashes, mark = re.escape(quote["slashes"]), quote["quote"]
    if len(mark) == 3:
        end = text.find(mark, quote.end())
        return len(text) if end < 0 else end
    within = rf"(?:[^{mark}\\\n]|\\.)*" if not slashes else r"[^\n]*?(?<!\\)"
    closed = re.compile(rf"{within}(?={slashes}{mark})").match(text, quote.end())
    if closed:
        return closed.end()
    # A value of several lines ends where its quote closes a line; else the text was cut.
    several = not slashes and re.compile(
        rf"(?:(?!\n[ \t]*\n)[^{mark}]){{1,2000}}(?={mark}[ \t]*(?:[,;)\]}}]|\n|\Z))"
    ).match(text, quote.end())
    if several:
        return several.end()
    end = text.find("\n", quote.end())
    return len(text) if end < 0 else end


def _object(place: _Place, *, look: bool) -> tuple[int, int]:
    """Return the extent of the list or object that is the value; the JSON schema of a secret is no value."""
    text, at = place.text, place.value
    if not look or _SCHEMA.match(text, at):
        return at, at
    # Strings are passed over; they are escaped as often as the name is.
    slashes = _SLASHES.match(text, place.end)
    quote = rf'(?<!\\){re.escape(slashes[0])}"' if slashes else ""
    strings = rf"{quote}[\s\S]*?{quote}" if slashes and slashes[0] else r'"(?:[^"\\]|\\.)*"'
    depth = 0
    for found in re.compile(rf"{strings}|[\[\]{{}}]").finditer(text, at, at + _LONGEST_OBJECT):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if not depth:
            return at, found.end()
    return at, -1


def _end(place: _Place, most: int) -> int:
    """Return the end of an unquoted value, at most `most`."""
    text, name = place.text, place.text[place.start : place.end].lower()
    if place.sign == ">":
        element = _ELEMENT.match(text, place.value)
        return element.end() if element else place.value
    if name.endswith(("authorization", "cookie")):
        ends = _END_OF_LINE
    elif text[place.start - 1 : place.start] in ("?", "&", ";"):
        ends = _END_OF_PARAMETER if text[place.start - 1] != ";" else _END_OF_FIELD
    elif place.sign == "--" or (place.sign == "=" and not place.spaced):
        ends = _END_OF_WORD
    else:
        before = text[max(0, place.start - _LOOK_BACK) : place.start]
        ends = _END_OF_SCALAR if _LINE_START.search(before) else _END_WITHIN_LINE
    found = ends.search(text, place.value, most)
    return found.start() if found else min(most, len(text))


def _is_no_secret(place: _Place, value: str, at: int, after: str) -> bool:
    """Return whether an unquoted value is code, a type, a template, or a word about secrets."""
    name = place.text[place.start : place.end].lstrip("-")
    if value[:1] == "<" and _ANGLES.match(place.text, at):
        return True
    if not value or value.lower() in _NOTHING_YET or _TEMPLATE.match(value) or _TYPE.fullmatch(value):
        return True
    if place.sign == "--":
        return value.startswith("-") or value.lower() in _PROSE or value == name.upper().replace("-", "_")
    if name.lower() in ("pwd", "oldpwd") and _PATH.match(value):
        return True
    if name.lower().endswith("key") and _KEY_FILE.match(value):
        return True
    return _is_code(name, value, place.text, at, after) or _is_prose(place, value)


def _is_code(name: str, value: str, text: str, at: int, after: str) -> bool:
    if _CALL.match(text, at) or _STATEMENT.match(value) or _LITERAL.match(value):
        return True
    if dotted := _DOTTED.fullmatch(value):
        return (
            name.lower() == "pw"
            or dotted[1] in _ROOTS
            or any(is_secret_name(part) for part in value.split("."))
        )
    if not _IDENTIFIER.fullmatch(value):
        return False
    # `connect(password=password)` passes one on; `PASSWORD=password` is a weak one.
    same = value.lower() == name.lower().rpartition(".")[2]
    if same and "." in name:
        return True
    return (same and value[0].isupper() and name != value) or (
        after in (",", ")", "}") and (same or is_secret_name(value))
    )


def _is_prose(place: _Place, value: str) -> bool:
    before = place.text[max(0, place.start - _LOOK_BACK) : place.start]
    if _COUNTED.search(before):
        return True
    first, _, rest = value.partition(" ")
    if rest and first.lower() in _GERMAN_PROSE:
        return True
    if rest and place.text[place.start : place.end].lower() == "cookie":
        return "=" not in value
    return place.sign == ":" and bool(rest) and first.lower() in _PROSE and bool(_AFTER_A_WORD.search(before))
