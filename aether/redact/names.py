"""Names of secrets: which keys of configuration, code and JSON hold what must not be shown.

A key is taken apart into words (`accessToken`, `ACCESS_TOKEN` and `access-token` are the same two), and its last
words decide: `api_key` holds a secret, `api_key_url` does not, `token` does, `max_token` and `token_count` do not.
"""

from __future__ import annotations

from functools import lru_cache

from aether.text.patterns import lazy

_WORDS = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A key whose last word is one of these holds a secret.
_SECRET = frozenset(
    "password passwort passwd passphrase passcode pwd secret secrets credential credentials authorization cookie "
    "cookies apikey authkey authtoken accesstoken refreshtoken idtoken sessiontoken apitoken bottoken secretkey "
    "accesskey privatekey accountkey signingkey encryptionkey sharedaccesskey connectionstring jwt identitytoken "
    "registrytoken senha kennwort".split()
)
# "Password" where it is not written in ASCII letters alone, or in several words; a name that ends in one is a secret's.
FOREIGN = ("密码", "密碼", "口令", "パスワード", "비밀번호", "пароль", "contraseña", "mot de passe")
# So does one word that ends in these, such as `userpassword` and `PGPASSWORD`.
_SECRET_ENDS = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "secret",
    "secretkey",
    "privatekey",
    "authtoken",
)
# `<one of these>_key`: the services are those whose keys are met most often.
_KEY_OF = frozenset(
    "api access private secret signing encryption account master auth service subscription ssh deploy shared "
    "admin app application consumer client crypto hmac aes host function functions licence license webhook "
    "openai anthropic claude gemini google azure aws mistral cohere groq deepseek openrouter together replicate "
    "huggingface hf stripe twilio sendgrid mailgun datadog sentry algolia pinecone tavily serp supabase firebase "
    "cloudflare github gitlab slack notion linear telegram discord".split()
)
# `<one of these>_token` counts, pages or marks; it opens nothing.
_TOKEN_OF = frozenset(
    "max min num n total count per next page continuation previous prev sync cancel cancellation eos bos pad unk mask "
    "sep cls special stop start end first last sampled generated image text input output prompt new invalid "
    "unexpected".split()
)
_TOKENS_OF = frozenset("access auth api refresh secret bearer personal".split())
# What may follow a secret's own name: `API_KEY_PROD`, `password_2`, `password_hash`.
_MODIFIERS = frozenset(
    "value values hash base64 b64 plain plaintext str new old prod production dev test staging live primary "
    "secondary backup current confirm confirmation again raw pem".split()
)
_FORGETTING = 4096


@lru_cache(maxsize=_FORGETTING)
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
    if last in _SECRET or last.endswith(_SECRET_ENDS):
        return True
    return _is_secret_pair(before, last) or key.lower() in ("_auth", "auth_header")


def _is_secret_pair(before: str, last: str) -> bool:
    if last == "token":
        return before not in _TOKEN_OF
    if last == "tokens":
        return before in _TOKENS_OF
    if last == "key":
        return before in _KEY_OF
    if last == "string":
        return before in ("connection", "conn")
    # `pass` alone counts tests that passed.
    return last == "pass" and bool(before)
