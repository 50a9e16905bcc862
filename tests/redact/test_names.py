from aether.redact.assignments import is_secret_name
from tests.tables import rows

SECRET = """
password Passwort db_password DB_PASS userPassword PGPASSWORD passwd pwd passphrase api_key apiKey API-KEY x-api-key
OPENAI_API_KEY OPENAI_KEY anthropicKey client_secret clientSecret secret secrets SECRET_2 AWS_SECRET_ACCESS_KEY
access_token accessToken AccessToken refresh-token id_token token GITHUB_TOKEN _authToken _auth authorization
Proxy-Authorization cookie Set-Cookie private_key privateKey AccountKey SharedAccessKey connection_string
ConnectionString credentials api_tokens API_KEY_PROD password_hash password_confirmation spring.datasource.password
--api-key jwt encryption_key subscription-key identitytoken senha Kennwort 密码 Пароль Contraseña mi_contraseña
"""
PLAIN = """
max_tokens max_token maxTokens token_count tokenCount total_tokens tokens input_tokens token_type tokenizer
next_page_token eos_token pad_token password_policy passwords_url secret_name secretary key keys primary_key
foreign_key sort_key cache_key public_key keyboard monkey author authored pass passed passage compass bypass string
query_string api_key_url private tokenize_text 2 resenha contraseñas 密码学
"""


@rows("name", SECRET.split())
def test_a_secrets_name_is_known(name):
    assert is_secret_name(name)


@rows("name", [*PLAIN.split(), "", "…", "secret sauce recipe"])
def test_another_name_is_not(name):
    assert not is_secret_name(name)
