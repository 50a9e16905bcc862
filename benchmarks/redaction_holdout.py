"""How many secrets does redaction leave, and how many look-alikes does it change, on four hold-out sets?

Set 2 and set 3 were written before the rules were read; the rules were corrected after the first run of each. Set 4 was
written from the published documentation of the formats before the rules were changed: 4a, its odd rows, is for development,
4b, its even rows, for the report. Set 5 was written from memory of published documentation before the table of forms was
read; forms were added after its first run. In a row, «a32» is a secret of 32 random characters of the class a, ‹h8› is a
random text that may stay, `¦` is dropped. A secret counts as left if half of it is left.

Usage: python benchmarks/redaction_holdout.py 2|3|4|4a|4b|5 [-v]
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import random
import re
import string
import sys
from pathlib import Path

CLASSES = {
    "a": string.ascii_letters + string.digits,
    "h": string.digits + "abcdef",
    "H": string.digits + "ABCDEF",
    "u": string.ascii_uppercase + string.digits,
    "w": string.ascii_lowercase + string.digits,
    "l": string.ascii_lowercase,
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "-_",
}
WORDS = "Sommer garden Fluss river Lampe copper Anker violet Kiesel maple Nebel harbor".split()
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
MARK = re.compile("([«‹])([a-zA-Z])(\\d+)[»›]")


SEED_WORDS = json.loads((Path(__file__).resolve().parents[1] / "data/seed_words.json").read_text())[
    "words"
].split()


def seed_phrase(source, length, *, valid):
    """Return a phrase of BIP-39: the entropy, then the first bits of its SHA-256, eleven bits a word."""
    bits = length * 32 // 3
    entropy = source.getrandbits(bits).to_bytes(bits // 8, "big")
    check = hashlib.sha256(entropy).digest()[0] >> (8 - bits // 32)
    number = int.from_bytes(entropy, "big") << (bits // 32) | (check if valid else check ^ 1)
    return " ".join(SEED_WORDS[number >> 11 * place & 2047] for place in reversed(range(length)))


def crc16(content):
    return content + binascii.crc_hqx(content, 0).to_bytes(2, "little")


def value(source, kind, length):
    if kind == "K":  # the seed of a user of NATS: two bytes of prefix, 32, and their CRC-16 (XMODEM)
        return base64.b32encode(crc16(bytes((0x95, 0x00)) + source.randbytes(32))).decode().rstrip("=")
    if kind == "W":  # a private key of Bitcoin in its import format
        key = b"\x80" + source.randbytes(32) + b"\x01"
        key += hashlib.sha256(hashlib.sha256(key).digest()).digest()[:4]
        number, text = int.from_bytes(key, "big"), ""
        while number:
            number, digit = divmod(number, 58)
            text = BASE58[digit] + text
        return text
    if kind in "MN":
        return seed_phrase(source, length, valid=kind == "M")
    if kind == "E":  # a file .env in base64
        lines = [
            f"DB_PASSWORD={value(source, 'a', length)}",
            "DEBUG=false",
            f"API_KEY={value(source, 'h', 32)}",
        ]
        return base64.b64encode("\n".join(lines).encode()).decode()
    if kind == "p":  # a generated password: letters, digits and signs
        while True:
            text = "".join(source.choice(CLASSES["a"] + "!#%*-_.+^~") for _ in range(length))
            mixed = all(re.search(kind, text) for kind in ("[a-z]", "[A-Z]", "\\d"))
            if mixed and text[0].isalnum() and text[-1].isalnum():
                return text
    if kind == "m":  # a password a person made up
        return (
            source.choice(WORDS).title()
            + source.choice("_-!#")
            + str(source.randint(10, 9999))
            + source.choice(["", "!", "x"])
        )
    while True:
        text = "".join(source.choice(CLASSES[kind]) for _ in range(length))
        if kind in "ld" or (re.search("\\d", text) and (kind == "d" or re.search("[a-zA-Z]", text))):
            return text


def filled(template, source):
    secrets = []

    def one(found):
        text = value(source, found[2], int(found[3]))
        if found[1] == "«":
            secrets.append(text)
        return text

    return MARK.sub(one, template.replace("\\n", "\n").replace("\\t", "\t").replace("¦", "")), secrets


def leaked(secret, output):
    """Whether half of the secret (at least 5 characters) is still there."""
    size = max(5, (len(secret) + 1) // 2)
    return any(secret[i : i + size] in output for i in range(max(1, len(secret) - size + 1)))


def rows(text):
    return [line for line in text.strip("\n").split("\n") if line.strip()]


SECRETS_2 = rows(r"""
MAILGUN_SMTP_PASS=«a22»
export DJANGO_SECRET_KEY='«p50»'
SESSION_SECRET="«h64»"
JWT_SIGNING_KEY=«b44»=
APP_KEY=base64:«b43»=
LARAVEL_DB_PW=«p12»
GRAFANA_ADMIN_PASS=«m1»
TWILIO_AUTH=«h32»
OPENWEATHER_APPID=«h32»
RAILS_MASTER_KEY=«h32»
SECRET_KEY_BASE=«h128»
NEXTAUTH_SECRET=«b43»=
ALGOLIA_ADMIN_KEY=«h32»
CLOUDFLARE_API_TOKEN=«s40»
DATADOG_APP_KEY=«h40»
DD_API_KEY: «h32»
SLACK_SIGNING_SECRET=«h32»
ENCRYPTION_KEY = "«h64»"
export VAULT_TOKEN=«a26»
MINIO_ROOT_PASSWORD=«m1»
set REDIS_PASS=«a18»
$env:SQL_PWD='«p14»'
SMTP_PASSWD=«a16» # rotated in May
ADMIN_PASSPHRASE="«m1» «m1» «m1»"
WEBHOOK_SECRET=«h40»
COOKIE_SECRET: '«a32»'
HMAC_KEY=«h64»
SALT_MASTER_SECRET: «b44»
FIREBASE_PRIVATE_KEY_ID=«h40»
SENTRY_DSN=https://«h32»@o‹d6›.ingest.sentry.io/‹d7›
sshpass -p«a12» ssh deploy@‹d2›.example.net
psql "postgresql://app:«p14»@db.internal:5432/app?sslmode=require"
mysql --user=root --password='«p12»' -e 'show tables'
mariadb -h db -u app -p«a14» shop < dump.sql
redis-cli -u redis://default:«a24»@cache:6379 PING
redis-cli --pass «a24» info
mongodump --uri "mongodb://admin:«p13»@10.1.2.3/prod"
curl -s -u "api:key-«h32»" https://api.mailgun.net/v3/domains
curl -X POST -H "Authorization: token «h40»" https://git.example.net/api/v1/repos
curl -H 'Authorization: Bearer «s48»' https://api.example.net/me
curl --oauth2-bearer «s40» https://api.example.net
curl -H "X-Vault-Token: «a26»" $VAULT_ADDR/v1/secret/data/app
curl -H "x-functions-key: «s54»==" https://fn.azurewebsites.net/api/run
curl "https://maps.example.net/geo?key=«s39»&q=Bonn"
curl --data-urlencode 'client_secret=«a40»' https://login.example.net/token
wget --header="Authorization: Basic «b28»" https://files.example.net/a.zip
http POST :8000/login username=eva password=«m1»
gcloud auth activate-refresh-token eva@example.net 1//0«s60»
az login -u eva@example.net -p '«p16»'
az acr login -n reg --username eva --password «p24»
docker login registry.example.net --username ci --password «a28»
podman login -u ci -p «a28» quay.io
skopeo copy --dest-creds ci:«a24» docker://a docker://b
helm repo add x https://h.example.net --username ci --password «a20»
kubectl create secret docker-registry r --docker-password=«a20» --docker-username=ci
kubectl config set-credentials eva --token=«s60»
terraform login -token=«a14».atlasv1.«s60»
terraform apply -var 'db_password=«p16»'
ansible-vault encrypt_string '«p18»' --name db_pass
ssh-keygen -t ed25519 -N '«p16»' -f id
openssl pkcs12 -export -in c.pem -out c.p12 -password pass:«a16»
openssl enc -d -aes256 -in x -pass pass:«m1»
7z x backup.7z -p«a14»
unrar x -p«a12» film.rar
gpg --pinentry-mode loopback --passphrase '«m1»' -d x.gpg
smbclient -U 'DOM\\eva%«a12»' //fs/share
mount -t cifs //fs/x /mnt -o username=eva,password=«a14»
rclone config create r s3 secret_access_key «b40»
aws configure set aws_session_token «b120»
export AWS_SECRET_ACCESS_KEY=«b40»
s3cmd --secret_key=«b40» ls
doctl auth init -t dop_v1_«h64»
heroku authorizations:create && export HEROKU_API_KEY=‹h8›-«h4»-«h4»-«h4»-«h12»
gh secret set NPM_TOKEN --body "npm_«a36»"
npm publish --//registry.¦npmjs.org/:_authToken=npm_«a36»
pip install --index-url https://ci:«a24»@pypi.example.net/simple app
poetry config pypi-token.pypi pypi-AgEIcHlwaS5vcmc«s90»
yarn config set npmAuthToken «s36»
cargo publish --token cio«a32»
gem push --key «h48» a.gem
nuget push a.nupkg -ApiKey oy2«w43»
dotnet nuget push a.nupkg --api-key oy2«w43»
bundle config gems.example.net ci:«a20»
composer config http-basic.repo.example.net eva «h40»
git push https://eva:«h40»@git.example.net/eva/a.git
git clone https://x-access-token:ghs_«a36»@github.com/a/b
svn co --username eva --password «m1» https://svn.example.net
sqlplus scott/«a12»@//db:1521/orcl
isql -U sa -P «a12» -S srv
bq --service_account_credential_file=x && echo ya29.«s120»
ldapwhoami -D uid=eva,dc=x -w '«p14»'
net user eva «a12» /add
runas /user:eva & echo «m1» | su - eva
echo 'eva:«p14»' | sudo chpasswd
useradd -p '$6$‹a8›$«a86»' eva
htpasswd -nb eva «m1»
vncpasswd <<< '«a8»'
expect "assword:" { send "«m1»\r" }
nmcli dev wifi connect Office password «m1»
wpa_passphrase Office «m1»
tailscale up --auth-key=tskey-auth-k«a16»CNTRL-«a32»
flyctl auth token fo1_«s43»
vercel --token «a24» --prod
netlify deploy --auth nfp_«a36»
wrangler secret put X <<< "«a40»"
supabase login --token sbp_«h40»
stripe listen --api-key sk_test_«a99»
sentry-cli login --auth-token sntryu_«h64»
circleci setup --token «h40» --no-prompt
jf config add --access-token «s64»
consul acl token read -token «h8»-«h4»-«h4»-«h4»-«h12»
influx config create -t «s86»==
database:\n  user: app\n  password: «p16»\n  host: db
smtp:\n  auth:\n    user: eva\n    pass: "«a16»"
spring:\n  datasource:\n    username: app\n    password: «m1»
services:\n  db:\n    environment:\n      - MYSQL_PASSWORD=«m1»\n      - MYSQL_USER=a
environment:\n  POSTGRES_PASSWORD: «m1»\n  POSTGRES_DB: a
apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  db: «b32»
kind: Secret\nstringData:\n  license: «a24»
users:\n- name: eva\n  user:\n    client-key-data: «b200»
users:\n- name: eva\n  user:\n    token: «s64»
all:\n  vars:\n    ansible_ssh_pass: «m1»\n    ansible_user: eva
wifi:\n  ssid: Office\n  password: «m1»
api:\n  encryption:\n    key: "«b43»="
alertmanager:\n  slack_api_url: https://hooks.slack.com/services/T«u8»/B«u8»/«a24»
basic_auth:\n  username: prom\n  password: «a20»
secrets:\n  - name: x\n    value: «a30»
{"client_id":"‹a20›","client_secret":"«s34»"}
{"access_token": "«s80»", "expires_in": 3600}
{"refresh_token":"«s64»","scope":"all"}
{"type":"service_account","private_key_id":"«h40»"}
{"name":"eva","password":"«m1»","age":3}
{\"user\":\"eva\",\"password\":\"«p12»\"}
{"ConnectionStrings":{"Main":"Server=db;Database=a;User Id=sa;Password=«p14»;"}}
{"auth":{"token":"«h40»"}}
{"auths":{"reg.example.net":{"auth":"«b36»=="}}}
{"apiKey": "«s39»", "authDomain": "a.firebaseapp.com"}
{"AccountKey": "«b86»=="}
[remote]\npassword = «a22»\nhost = h
[github]\noauth_token = "«h40»"
[database]\nurl = "postgres://app:«a16»@db/app"
[tool.x]\napi-token = "«a32»"
auth_pass = "«m1»"
secret_key="«a32»"
[profile x]\naws_secret_access_key=«b40»
machine git.example.net login eva password «a20»
db.example.net:5432:shop:eva:«p14»
//npm.example.net/:_authToken=«s36»
//npm.example.net/:_auth=«b32»
eva:$2b$12$«a53»
eva:$apr1$‹a8›$«a22»
root:$y$j9T$‹a22›$«a43»:19000:0:99999:7:::
<server><username>ci</username><password>«m1»</password></server>
<add name="Db" connectionString="Data Source=db;Password=«p12»;User ID=a" />
<property name="hibernate.connection.password">«m1»</property>
<entry key="mail.password" value="«a16»"/>
<Password>«p12»</Password>
<apiKey>«a32»</apiKey>
spring.mail.password=«a16»
jdbc.password = «m1»
sonar.login=«h40»
signing.keyPassword=«m1»
storePassword=«m1»
keyAlias=a\nkeyPassword=«m1»
jdbc:postgresql://db:5432/app?user=app&password=«a16»
jdbc:sqlserver://db;databaseName=a;user=sa;password=«p14»;encrypt=true
jdbc:oracle:thin:scott/«a12»@db:1521:orcl
Driver={ODBC Driver 18};Server=db;UID=sa;PWD=«p14»
DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«b86»==;EndpointSuffix=core.windows.net
Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«b43»=
HostName=a.azure-devices.net;DeviceId=d;SharedAccessKey=«b43»=
https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=«b43»%3D
https://s3.amazonaws.com/b/k?X-Amz-Credential=x&X-Amz-Signature=«h64»
amqps://eva:«a32»@rabbit.example.net/vh
mqtt://eva:«a14»@broker:1883
nats://eva:«a14»@nats:4222
ldap://cn=admin:«a14»@ldap
clickhouse://default:«p16»@ch:9000/db
mysql+pymysql://app:«p14»@db/shop
snowflake://eva:«a16»@acc/db
redis://:«a24»@cache:6379/0
rediss://default:«a40»@eu1-x.upstash.io:6379
couchbase://eva:«a14»@cb
sftp://eva:«a12»@files.example.net/in
rtsp://admin:«a10»@10.0.0.9:554/stream1
socks5://eva:«a10»@proxy:1080
https://discord.com/api/webhooks/‹d18›/«s68»
https://outlook.office.com/webhook/‹h8›/IncomingWebhook/«h32»/‹h8›
https://api.telegram.org/bot‹d9›:AA«s33»/sendMessage
https://app.example.net/reset?token=«s32»
https://app.example.net/cb#access_token=«s40»&state=1
https://api.example.net/v1?api_key=«a32»
https://x.example.net/feed?private_token=«a20»
wss://x.example.net/ws?auth=«s40»
GET /data?apikey=«a24» HTTP/1.1
Cookie: sessionid=«w32»; csrftoken=‹a20›
Set-Cookie: SID=«a40»; HttpOnly; Path=/
Cookie: connect.sid=s%3A«s32».«a43»
Authorization: Bearer «s64»
authorization: Digest username="eva", response="«h32»"
Authorization: ApiKey «b58»==
Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=«h64»
Proxy-Authorization: Basic «b24»
X-API-KEY: «a32»
X-Auth-Key: «h37»
Ocp-Apim-Subscription-Key: «h32»
X-Gitlab-Token: «a20»
X-Shopify-Access-Token: shpat_«h32»
x-amz-security-token: «b160»
x-goog-api-key: AIzaSy«s33»
Api-Key: «a28»
2026-01-02 10:00:00 DEBUG login user=eva password=«m1» ok
INFO connecting with secret «a32»
[debug] config loaded: {'host': 'db', 'password': '«p12»', 'port': 5432}
level=info msg="auth" token=«s40»
time=1 api_key="«a32»" status=200
ERROR 1045 using dsn app:«p12»@tcp(db:3306)/shop
WARN: fallback password «m1» in use
npm ERR! //registry.¦npmjs.org/:_authToken=«h8»-«h4»-«h4»-«h4»-«h12»
+ curl -u ci:«a20» https://nexus.example.net
Generated password: «p20»
A temporary password is generated for root@localhost: «p12»
Initial Root Token: hvs.«a24»
Unseal Key 1: «b44»
Your API key is «a32»
PASSWORD for user eva is: «p12»
password = "«m1»"
const password = '«p14»';
let apiToken = `«a32»`;
private static final String API_SECRET = "«a40»";
var dbPassword string = "«m1»"
const clientSecret: string = "«s40»";
static let apiKey = "«a32»"
val token: String = "«a40»"
std::string password = "«m1»";
#define WIFI_PASS "«m1»"
#define API_TOKEN "«a32»"
char *pw = "«m1»";
$password = '«m1»';
define('DB_PASSWORD', '«p14»');
define( 'AUTH_KEY', '«p64»' );
'password' => env('DB_PASSWORD', '«m1»'),
os.environ["OPENAI_API_KEY"] = "«a48»"
os.environ.setdefault('SECRET_KEY', '«a50»')
config['SECRET_KEY'] = '«a24»'
app.secret_key = b'«a16»'
conn = psycopg2.connect(host="db", user="eva", password="«m1»")
client = Client(api_key="«a40»")
requests.get(u, auth=("eva", "«m1»"))
auth = HTTPBasicAuth('eva', '«p12»')
headers = {"Authorization": "Bearer «s50»"}
headers["X-Api-Key"] = "«a32»"
smtp.login("eva@example.net", "«a16»")
server.login(user, "«a16»")
ftp.login('eva', '«m1»')
ssh.connect("h", username="eva", password="«m1»")
Login-Passwort lautet «m1», bitte nicht weitergeben
Das WLAN-Kennwort ist «m1».
Zugang: Benutzername eva, Kennwort «m1»
Das Root-Passwort habe ich auf «m1» geändert.
Der Schlüssel für die API ist «a32»
PIN: «d6» für das Konto
Ich habe den Token «a36» erzeugt
Die Zugangsdaten sind eva und «p12»
Neues Passwort: «p14»
We rotated the database password to «p16» last night.
Log in as eva with password «m1»
the login is eva/«m1»
the shared secret between both services is «a32»
Please use this API key: «a36»
my PAT is ghp_«a36»
The key for the staging cluster is «a40», do not share it.
I think the passphrase is "«m1»"
set the secret to «a24» in production
Here are the credentials:\nuser: eva\npass: «m1»
Credentials\n- Username: eva\n- Password: «p12»
**Password:** «m1»
- password: `«m1»`
| password | «m1» |
| API key | `«a32»` |
ssh root@10.0.0.3 (password «m1»)
creds are eva:«m1»
The OTP secret is «u32»
otpauth://totp/X:eva?secret=«u32»&issuer=X
-----BEGIN ¦OPENSSH PRIVATE KEY-----\n«b70»\n«b70»\n-----END ¦OPENSSH PRIVATE KEY-----
-----BEGIN ¦EC PRIVATE KEY-----\n«b64»\n«b64»
-----BEGIN ¦PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n«b64»\n«b64»\n=‹b4›
"private_key": "-----BEGIN ¦PRIVATE KEY-----\\n«b64»\\n«b64»\\n-----END ¦PRIVATE KEY-----\\n"
PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n«b64»
token gl¦pat-«s20»
GITLAB_CI glrt-«s20»
use gldt-«s20» to deploy
deploy with gh¦o_«a36»
ghu_«a36»
ghr_«a36»
github_¦pat_«a22»_«a59»
xoxp-‹d12›-‹d12›-‹d12›-«h32»
xapp-1-A‹u10›-‹d13›-«h64»
xoxe.xoxp-1-«a160»
sk-ant-¦api03-«s93»AA
sk-ant-admin01-«s93»AA
sk-¦proj-«s74»T3BlbkFJ«s74»
sk-svcacct-«s60»
sk-or-v1-«h64»
AIza¦Sy«s33»
ASIA«u16» and its key
ABIA«u16»
SG.«s22».«s43»
rk_live_«a24»
whsec_«b32»
pk.eyJ1Ijoi«s60».«s22»
sk.eyJ1Ijoi«s60».«s22»
shpss_«h32»
shpca_«h32»
hf_«a34» for the hub
r8_«a37» on replicate
gsk_«a52»
nvapi-«s64»
pplx-«a48»
tvly-dev-«a32»
dapi«h32»
glsa_«a32»_«h8»
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi«s40».«s43»
NRAK-«u27»
NRII-«s32»
PMAK-«h24»-«h34»
dp.pt.«a43»
lin_api_«a40»
ntn_«a46»
figd_«s40»
ATATT3xFfGF0«s180»
ATCTT3xFfGN0«s160»
dckr_pat_«s27»
sl.B«s130»
EAACEdEose0cBA«a120»
ops_eyJ«s250»
cfut_«a40»
v1.0-«h24»-«h146»
AGE-SECRET-KEY-1«u58»
sbp_«h40»
pscale_pw_«s43»
rnd_«a32»
CFPAT-«s43»
mfa.«s84»
SK«h32»
AC‹h32›:«h32»
key-«h32»
tk-us-«s48»
API-«u32»
squ_«h40»
tfp_«a44»_«a14»
phc_«a43»
lsv2_pt_«h32»_«h10»
sntrys_eyJpYXQiO«b60»_«b43»
t1.9euel«s80».«s86»
AQVN«s35»
""")

ALIKES_2 = rows(r"""
DB_PASSWORD=
DB_PASSWORD=changeme
password: ********
API_KEY=your_api_key_here
API_KEY=xxxxxxxxxxxxxxxx
SECRET_KEY=${SECRET_KEY:-dev}
TOKEN="$(cat /run/secrets/token)"
TOKEN=`vault read -field=token secret/x`
PASSWORD=$(pass show db)
password: !vault |
password: "{{ lookup('env', 'DB_PASS') }}"
password: {{ .Values.db.password | quote }}
api_key: ${{ secrets.API_KEY }}
password: %(db_password)s
password=%DB_PASS%
token: <token>
token: [REDACTED]
token: ***
token: null
"password": null,
"password": ""
"token": false
"apiKey": "<YOUR_API_KEY>"
"secret": "..."
secretName: web-tls
secretKeyRef: {name: db, key: password}
existingSecret: db-credentials
imagePullSecrets:\n- name: regcred
passwordSecretRef:\n  name: db
kind: SecretStore
kind: Secret\nmetadata:\n  name: db\ntype: Opaque
password_file: /run/secrets/db
POSTGRES_PASSWORD_FILE=/run/secrets/db
SSH_KEY_PATH=~/.ssh/id_ed25519
private_key_path = "/etc/ssl/private/a.key"
tls_key: /etc/tls/server.key
key_file=server.key
ssl_certificate_key /etc/nginx/ssl/a.key;
const token = await getToken(user);
const apiKey = config.get('apiKey');
let password = req.body.password;
password := os.Getenv("DB_PASSWORD")
String password = request.getParameter("password");
secret = secrets.token_urlsafe(32)
api_key = os.environ["API_KEY"]
api_key: str = Field(..., alias="API_KEY")
password: SecretStr
token: Annotated[str, Depends(oauth2_scheme)]
def login(user: str, password: str, token: str = "") -> bool:
func Login(user, password string) error {
fn login(password: &str) -> Result<Token, Error> {
public void setPassword(String password) { this.password = password; }
interface Creds { password: string; token?: string }
password = models.CharField(max_length=128)
password = Column(String(128), nullable=False)
token VARCHAR(255) NOT NULL
password_hash TEXT,
secret BYTEA NOT NULL,
CREATE TABLE tokens (id INT, token TEXT);
SELECT password FROM users WHERE id = 1
UPDATE users SET password = ? WHERE id = ?
IDENTIFIED BY :password
assert token == expected_token
if (token !== session.token) return;
while token := next(tokens): pass
for token in tokenizer.encode(text):
token = line.split()[0]
token = tokens[i + 1]
self.password = password or getpass.getpass()
password=getpass("Password: ")
raise ValueError("password must not be empty")
throw new Error('token expired');
logger.info("token=%s", token)
print("password:", password)
f"Bearer {token}"
'Authorization': `Bearer ${token}`
headers = {"Authorization": f"Bearer {self.token}"}
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Bearer {{token}}
X-Api-Key: ${API_KEY}
curl -H "Authorization: Bearer $TOKEN" https://api.example.net
curl -u "$USER:$PASS" https://api.example.net
curl -u eva https://api.example.net
curl -X POST -d @body.json https://api.example.net/token
postgresql://user:password@localhost/db
postgresql://$DB_USER:$DB_PASS@db/app
postgres://{user}:{password}@{host}/{name}
mongodb://localhost:27017/test
redis://cache:6379/0
https://user@git.example.net/a.git
ssh://git@git.example.net:2222/a.git
git@git.example.net:eva/a.git
mysql -u root -p
mysql -uroot -p shop
mysqldump -u root -p shop > dump.sql
psql -U app -W -d app
ssh -p 2222 eva@example.net
scp -P 22 a b:
nmap -p 1-1024 10.0.0.1
docker run -p 127.0.0.1:8080:80 -e TZ=UTC nginx
docker login -u ci --password-stdin < token.txt
cp -p a b
mkdir -p src/secret/tokens
tar -pxf a.tar
grep -r "password" src/
rg -n 'api_key|secret|token' --type py
git log -S password -p -- config.py
git commit -m "Rotate secret token for staging"
git checkout ‹h40›
git show ‹h8›:src/a.py
commit ‹h40›
index ‹h7›..‹h7› 100644
Merge: ‹h7› ‹h7›
From ‹h40› Mon Sep 17 00:00:00 2001
HEAD is now at ‹h7› Fix token parser
sha256:‹h64›
image: nginx@sha256:‹h64›
digest: sha512-‹b86›==
"integrity": "sha512-‹b86›=="
resolved "https://registry.yarnpkg.com/a/-/a-1.0.0.tgz#‹h40›"
--hash=sha256:‹h64›
checksum = "‹h64›"
md5sum: ‹h32›  a.iso
ETag: "‹h32›"
uuid: ‹h8›-‹h4›-‹h4›-‹h4›-‹h12›
"id": "‹h8›-‹h4›-‹h4›-‹h4›-‹h12›"
trace_id=‹h32› span_id=‹h16›
request id ‹h8›-‹h4›-‹h4›-‹h4›-‹h12›
X-Request-Id: ‹h32›
traceparent: 00-‹h32›-‹h16›-01
container ‹h64› started
pod web-‹h9›-‹w5› is running
"tool_use_id": "toolu_01‹a22›"
"id": "msg_01‹a22›"
"id": "chatcmpl-‹a29›"
call_‹a24› finished
run_‹a24› thread_‹a24›
req_‹a24›
cus_‹a14› paid in_‹a24›
price_‹a24›
arn:aws:iam::‹d12›:role/deploy
i-‹h17› in vpc-‹h8›
ami-‹h17›
projects/app/secrets/db/versions/3
arn:aws:secretsmanager:eu-west-1:‹d12›:secret:db-‹a6›
vault kv get secret/app
aws secretsmanager get-secret-value --secret-id db
gh secret list
kubectl get secret db -o yaml
kubectl create secret generic db --from-file=password.txt
op read op://vault/db/password
pass show mail/eva
export TOKEN=$(gh auth token)
eval "$(ssh-agent -s)"
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹b43› eva@host
-----BEGIN PUBLIC KEY-----\n‹b64›\n-----END PUBLIC KEY-----
-----BEGIN CERTIFICATE-----\n‹b64›\n‹b64›\n-----END CERTIFICATE-----
data:image/png;base64,iVBORw0KGgo‹b80›
public_key: ‹b44›
pk_note: the public key is published
fingerprint SHA256:‹b43›
key fingerprint: ‹H2›:‹H2›:‹H2›:‹H2›
The password must have at least 12 characters.
Passwords are hashed with argon2id.
Password reset emails expire after 30 minutes.
Your password has expired.
The password is incorrect
Enter the password and press OK.
The token is missing a signature.
A token is a pair of kind and text.
The token bucket refills at 10 per second.
Each token costs 0.3 cents.
Total tokens: 12,345 (input 12,000, output 345)
token count: 4096
"usage": {"input_tokens": 812, "output_tokens": 99}
max_output_tokens: 8192
token_budget = 32000
The secret to good tests is isolation.
The secret is out: we use SQLite.
Secrets live in the vault, see docs/secrets.md
Store the API key in your keychain.
You need an API key to use this endpoint.
the api key was revoked yesterday
An API key can be created at https://example.net/keys
The key is the id of the row.
key: created_at
sort_key: name
partition_key = "customer_id"
primary key (id, created_at)
foreign_key: order_id
key=lambda row: row[1]
keys = sorted(table)
KEY_LENGTH = 32
KEYWORDS = {"if", "else"}
press any key: yes
keyboard: qwertz
auth: true
auth_type: oauth2
authentication: kerberos
author: Eva Example
authors = ["Eva <eva@example.net>"]
login: eva
login_url = "/accounts/login"
LOGIN_REDIRECT_URL = "home"
pass_rate: 98.5
passed: 120, failed: 2
pass: 14
PASS  src/token.test.ts (5.2 s)
compass = 90
passenger: 4
password_reset_token_ttl: 3600
PASSWORD_MIN_LENGTH=12
TOKEN_TTL_SECONDS=900
SECRET_ROTATION=monthly
JWT_ALGORITHM=HS256
token_endpoint: https://login.example.net/oauth/token
token_url="https://login.example.net/token"
password_field = "#password"
input[type=password]
<input type="password" name="password" id="pw">
<label for="token">Token</label>
passwordInput.value = ''
usage: app login [--token TOKEN] [--password-file FILE]
  --password PASSWORD   the password of the account
  -p, --port PORT
:param token: the token of the session
@param {string} apiKey The key
* `password` - (Required) The master password.
| password | string | yes |
| token | the API token |
Args: token (str): token to check
Das Passwort muss geändert werden.
Passwort falsch, bitte erneut eingeben.
Das Kennwort ist abgelaufen.
Das Token ist ungültig.
Der Schlüssel ist eindeutig.
Das Geheimnis ist gelüftet.
Die Zugangsdaten liegen im Tresor.
Passwort: wird per Brief verschickt
Der API-Schlüssel fehlt in der Umgebung.
PIN eingeben:
cookie: a small file
Cookie consent: accepted
Set-Cookie is missing SameSite
session: closed
session_id column is indexed
signature: def f(a, b)
signature = inspect.signature(f)
credentials = Credentials.from_env()
credentials: omit
credentialsId: 'deploy-key'
salt = os.urandom(16)
nonce: ‹d6›
pin: 7
pw = self.width
hash: ‹h40›
seed = ‹d8›
license: MIT
bearer: truck
Bearer authentication is used.
Basic authentication is deprecated.
basic income is a topic
secret_santa = draw(names)
tokenize("a b")
detokenized = " ".join(tokens)
from secrets import compare_digest
import token
src/auth/token_service.py:44: error: Missing return
tests/test_password.py::test_reset PASSED
at login (/srv/app/password.js:10:5)
a:b:c:d
12:00:01:200:x
2026-01-02T10:00:00Z level=info msg="token refreshed" user=eva
level=warn msg="password rejected" attempts=3
user=eva role=admin token_count=3
https://example.net/password/reset
https://example.net/docs/api-keys#create
https://example.net/a?page_token=2
https://example.net/search?q=password+manager
https://example.net/?utm_source=token
https://example.net/‹h40›/a.js
/srv/app/secrets/README.md
AKIAIOSFODNN7EXAMPLE_KEY is not set
ghp_...
sk-...
sk-xxxxxxxxxxxxxxxx
sk-learn-contrib-metrics
glpat-XXXXXXXXXXXXXXXXXXXX
hf_hub_download(repo_id, filename)
pk_table_column_name_with_suffix
re_export_all_members_from_module
rk_helper_function_name_here
test_token_is_refreshed_when_expired
""")

SECRETS_3 = rows(r"""
IMAP_PASSWORD=«m1»
export PGPASSWORD="«p14»"
ORACLE_PWD=«a14»
FTP_CREDS=eva:«a12»
MAPBOX_SECRET_TOKEN=sk.«s60».«s22»
SIGNING_SECRET='«h40»'
KEYSTORE_PASS=«m1»
BOT_TOKEN=‹d10›:AA«s33»
S3_SECRET=«b40»
MASTER_KEY="«b43»="
PUSHOVER_USER_KEY=«w30»
setx DB_PASSWORD "«p14»"
ENV ADMIN_PASSWORD=«m1»
ARG GITHUB_TOKEN=«a40»
docker run -e REDIS_PASSWORD=«m1» redis
docker compose exec db mysql -uroot -p«m1»
mysqladmin -u root password '«p12»'
psql postgres://eva:«a14»@localhost
pg_dump "host=db user=eva password=«a14»"
redis-server --requirepass «a20»
mongo mongodb+srv://eva:«a14»@c.mongodb.net/x
curl -u eva:«a14» sftp://host/x
curl -H 'X-Token: «a32»' https://a.example.net
curl -H 'Cookie: session=«a40»' https://a.example.net
curl -F token=«a32» -F file=@a https://u.example.net
curl -d '{"username":"eva","password":"«m1»"}' https://a.example.net
curl --user 'eva:«p14»' https://a.example.net
wget --password=«a14» --user=eva https://a
http --auth eva:«a14» https://a.example.net
xh -a eva:«a14» https://a.example.net
gcloud sql users set-password root --password=«p14»
az keyvault secret set --vault-name v --name n --value «a24»
aws secretsmanager create-secret --name n --secret-string «a24»
aws ssm put-parameter --type SecureString --name n --value «a24»
oc login -u eva -p «m1»
helm install a b --set auth.password=«a16»
kubectl create secret generic s --from-literal=token=«a24»
vault kv put secret/app password=«a16»
ssh-add <<< "«b64»"
openssl genrsa -passout pass:«m1» 2048
keytool -importkeystore -srcstorepass «m1» -deststorepass «m1»
jarsigner -storepass «m1» a.jar k
msfconsole -x 'set PASSWORD «m1»'
crackmapexec smb h -u eva -p '«m1»'
evil-winrm -i h -u eva -p '«m1»'
restic init --password-command 'echo «a16»'
borg export BORG_PASSPHRASE='«m1»'
cryptsetup open --key-file <(echo -n «a20») d m
auth:\n  username: eva\n  password: '«m1»'
gitlab:\n  token: «s20»
credentials:\n  api_key: «a32»\n  user: a
telegram:\n  bot_token: "‹d10›:AA«s33»"
mqtt:\n  broker: b\n  password: «m1»
env:\n  - name: DB_PASSWORD\n    value: "«m1»"
env:\n- name: API_TOKEN\n  value: «a40»
kind: Secret\ndata:\n  password: «b24»\n  username: YWRtaW4=
{"env":[{"name":"SECRET_KEY","value":"«a32»"}]}
{"secretAccessKey":"«b40»","region":"eu"}
{"idToken":"«s90»"}
{"botToken": "«s40»"}
{"passphrase":"«m1»"}
{'api_key': '«a32»'}
[smtp]\nsmtp_pass=«m1»
[mysql]\npassword="«p14»"
[registry]\ntoken = "«a36»"
<secret>«a32»</secret>
<setting name="Token"><value>«a40»</value></setting>
spring.security.user.password=«m1»
Data Source=db;User ID=sa;Password='«m1»'
Server=tcp:a.database.windows.net;Pwd=«p14»;
amqp://eva:«a14»@mq//
smtps://eva%40example.net:«a16»@mail.example.net:465
https://eva:«a20»@nexus.example.net/simple
ftp://eva:«m1»@files.example.net
https://hooks.slack.com/services/T«u8»/B«u10»/«a24»
https://a.example.net/x?access_token=«a40»&v=2
https://a.example.net/verify?code=1&secret=«a32»
Authorization: Token «h40»
Authorization: Basic «b32»==
X-Auth-Token: «a32»
x-access-token: «a40»
Cookie: auth_token=«h40»
DEBUG api key: «a32»
user eva authenticated with password '«m1»'
got token «a40» from server
DB password: «m1»
const SECRET = "«a32»";
String pwd = "«m1»";
token := "«a40»"
let password = "«m1»"
$apiKey = "«a32»";
API_KEY = '«a32»'
session.auth = ("eva", "«m1»")
pymysql.connect(host="db", user="a", passwd="«m1»")
redis.Redis(host="h", password="«a20»")
boto3.client("s3", aws_secret_access_key="«b40»")
openai.api_key = "sk-«a48»"
Das Passwort vom Router ist «m1»
Mein neues Kennwort lautet: «m1»
Benutzer eva / Passwort «m1»
Bitte mit Token «a36» anmelden
The wifi password: «m1»
password for the admin account is "«m1»"
The root password was changed to «m1»
our api token is «a36»
Username: eva\nPassword: «m1»
**API key**: `«a36»`
glpat-«s20»
ghs_«a36»
xoxb-‹d12›-‹d13›-«a24»
sk-ant-api03-«s93»AA
AKIA«u16»
sk_live_«a32»
npm_«a36»
hf_«a34»
SG.«s22».«s43»
dop_v1_«h64»
eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOi«s50».«s86»
-----BEGIN ¦RSA PRIVATE KEY-----\n«b64»\n«b64»\n-----END ¦RSA PRIVATE KEY-----
""")

ALIKES_3 = rows(r"""
IMAP_PASSWORD=${IMAP_PASSWORD}
TOKEN=
API_TOKEN=<paste here>
SECRET=$(openssl rand -hex 32)
password: "<your-password>"
password: xxx
password: {{ db_pass }}
token: "{{ token }}"
token: ${TOKEN}
"api_key": "YOUR_API_KEY"
api_key=None
password = input()
password = sys.argv[1]
password = ctx.params.password
token = response.json()["access_token"]
token = jwt.encode(payload, key)
const { password } = req.body
const token = localStorage.getItem('token')
this.apiKey = options.apiKey
api_key=settings.API_KEY
password: Optional[SecretStr] = None
password?: string | null
val password: String,
@Value("${db.password}")
password string `json:"password"`
secret: bytes
password text not null
where token = $1
raise AuthError("invalid token")
expect(password).toBe(hashed)
if password != confirm:
Authorization: Bearer YOUR_TOKEN
Authorization: Basic <credentials>
-H "X-Api-Key: $KEY"
curl -u user:$PASS https://a
https://user:${PASS}@host/a
mysql://root:{{ pw }}@db/app
docker login -u eva
mysql -h db -P 3306 -u root -p
psql -p 5432 -h db
kubectl get secrets -n prod
kubectl -n web port-forward -p 8080
ssh -i key.pem -p 22 host
rsync -avz -p a b
podman run -p 80:80 a
redis-cli -p 6379 -a
openssl rand -base64 32
openssl passwd -6
commit ‹h40› (HEAD)
git cherry-pick ‹h40›
git diff ‹h7› ‹h7›
sha1: ‹h40›
SHA-256 ‹h64›
blob ‹h40› 120
ETag: W/"‹h32›"
uuid=‹h8›-‹h4›-‹h4›-‹h4›-‹h12›
session ‹h8›-‹h4›-‹h4›-‹h4›-‹h12› started
"request_id": "req_‹a24›"
correlation-id: ‹h32›
container_id=‹h12›
layer sha256:‹h64› pulled
pnpm-lock: integrity: sha512-‹b86›==
"version": "1.2.3-beta.4+‹h8›"
ssh-rsa AAAAB3NzaC1yc2E‹b100› eva@h
-----BEGIN CERTIFICATE REQUEST-----\n‹b64›\n-----END CERTIFICATE REQUEST-----
color: #‹h6›
0x‹h16›
block 0x‹h64›
the password is stored encrypted
the password is never shown
The password of the user is optional
your token is invalid or expired
a token is valid for one hour
the secret is rotated weekly
set the password in the settings
set the token before calling run
log in with your password
enter your api key below
The login is broken
Login with GitHub
Das Passwort ist optional.
Das Passwort wurde geändert.
Token wird erneuert
Kennwort vergessen
the key is missing
key is a string
token limit: 4000
tokens_used=1234
num_tokens: 300
secret_version: 3
password_policy: strong
password_confirmation: required
PASSWORD_HASHERS = [
AUTH_USER_MODEL = "users.User"
auth_backend: ldap
passphrase_prompt = true
keypass_db_path=~/k.kdbx
access_key_id_field: id
cookie_name: sid
cookies: true
session_timeout: 30
csrf_protection: on
--token-file /run/token
--password-stdin
-p, --print  Print the token
[--secret SECRET]
| `API_KEY` | yes | the key |
secrets:\n  - source: db\n    target: db
valueFrom:\n  secretKeyRef:\n    name: db\n    key: token
env:\n  - name: TOKEN_URL\n    value: https://a.example.net/token
run: echo "::add-mask::$TOKEN"
/etc/ssl/private/key.pem
src/password/index.ts:3:9
tests/token_test.go
""")


SECRETS_4 = rows(r"""
INFISICAL_TOKEN is st.«h24».«h32».«h32»
export SVC=st.«h24».«h32».«h32»
Authorization failed for sk_a_«a40»
sk_b_«a32» is what the console shows
pk_v2_«a36»
use rk_eu_«a40» there
ntn_«d11»«a35»
lin_oauth_«h64»
e2b_«h40»
fc-«h32»
napi_«w64»
tgp_v1_«s43»
csk-«w48»
tvly-dev-«a32»
sb_secret_«s22»_«a8»
bkua_«h40»
CCIPAT_«a22»_«h40»
glsa_«a32»_«h8»
sntryu_«h64»
PMAK-«h24»-«h34»
dt0c01.«u24».«u64»
zpka_«a32»_«h8»
lsv2_pt_«h32»_«h10»
tskey-auth-«a17»CNTRL-«a32»
pcsk_«a6»_«a63»
signkey-prod-«h64»
variable "db_password" {\n  type    = string\n  default = "«p14»"\n}
variable "api_token" {\n  description = "Token of the API"\n  type = string\n  sensitive = true\n  default = "«a32»"\n}
variable "grafana_admin_pass" {\n  default = "«m1»"\n}
resource "random_thing" "x" {\n  master_password = "«p16»"\n}
locals {\n  secret_key = "«a32»"\n}
terraform apply -var="db_password=«p14»"
terraform plan -var 'api_key=«a32»' -out plan
curl -b "session=«a40»" https://app.example.net/me
curl --cookie 'sid=«h32»; theme=dark' https://app.example.net
curl -sS -b 'auth=«a36»; lang=de' -o out.html https://app.example.net
curl https://app.example.net -b "JSESSIONID=«H32»"
http GET https://app.example.net "Cookie:sessionid=«w32»"
パスワードは「«p12»」です。
ログインパスワード「«m1»」を使ってください
密码是「«p12»」，请保存
密碼為『«p14»』
口令：「«m1»」
数据库密码为“«p12»”
비밀번호는 '«p12»'입니다
key: sk-ant-api03-«s46»\n  «s46»AA
ghp_«a18»\n«a18»
My key got wrapped by the mail client:\nsk-proj-«s60»\n«s60»
xoxb-‹d12›-‹d13›-«a12»\n«a12»
«E20»
cat .env | base64\n«E16»
ENV_FILE: «E24»
echo «E18» | base64 -d > .env
data: «E40»
«M12»
my seed phrase: «M12»
recovery words\n1. write down\n«M24»
wallet backup = "«M12»"
Mnemonic «M15» keep it safe
WIFI:T:WPA;S:GuestNet;P:«p14»;;
WIFI:S:Home Net;T:SAE;P:«m1»;H:true;;
qr = "WIFI:T:WPA2;P:«a16»;S:office;;"
"private_key_id": "«h40»",
{"type":"service_account","private_key_id":"«h40»","client_email":"a@b.iam.gserviceaccount.com"}
private_key_id = "«h40»"
[Interface]\nPrivateKey = «b43»=\nAddress = 10.0.0.2/32
PresharedKey = «b43»=
Set-Cookie: connect.sid=s%3A«s32».«b43»; Path=/; HttpOnly
Cookie: __Secure-next-auth.session-token=«s80»
-e POSTGRES_PASSWORD=«p14» -e TZ=UTC postgres:16
docker run --env "API_TOKEN=«a32»" app
fly secrets set STRIPE_KEY=«a32»
wrangler secret put TOKEN <<< "«a40»"
gh secret set DEPLOY_KEY --body "«a40»"
kubectl create secret docker-registry r --docker-password=«p16»
az storage blob list --account-key «b86»==
aws configure set aws_secret_access_key «b40»
Proxy-Authorization: Basic «b32»=
wget --header="Authorization: Bearer «a40»" https://x.example.net
X-Vault-Token: «a26»
apikey: «a32»
curl -H "api-key: «h32»" https://search.example.net
git clone https://oauth2:«s26»@git.example.net/a/b.git
machine api.example.net login eva password «p14»
""")

ALIKES_4 = rows(r"""
Set-Cookie: theme=dark; SameSite=Lax; Secure
SameSite=Lax; Secure
Cookie flags: HttpOnly; SameSite=Strict; Secure
passwd: unchanged
passwd: no changes
password unchanged since 2024
token: unchanged
variable "db_password" {\n  type = string\n  sensitive = true\n}
variable "password_length" {\n  type    = number\n  default = 24\n}
variable "db_password" {\n  description = "Set it in the workspace"\n  default = null\n}
variable "token_url" {\n  default = "https://login.example.net/token"\n}
variable "secret_name" {\n  default = "prod/db/main"\n}
variable "region" {\n  default = "eu-central-1"\n}
password = var.db_password
master_password = random_password.db.result
secret_key = data.vault_generic_secret.app.data["key"]
terraform apply -var="region=eu-central-1"
terraform plan -var db_password=$DB_PASSWORD
curl -b cookies.txt https://app.example.net
curl -b jar -c jar https://app.example.net
curl --cookie-jar /tmp/jar.txt https://app.example.net
curl -b "theme=dark" https://app.example.net
curl -b "$COOKIE" https://app.example.net
パスワードは「必須」です
パスワードを「設定」から変更してください
パスワード「8文字以上」
「パスワードを忘れた」を押す
密码不能为空
密码是「必填」项
请在「设置」中修改密码
密碼『錯誤』
비밀번호를 '재설정' 하세요
legal winner thank year wave sausage worth useful legal winner thank thank
abandon all hope ye who enter here and sing about the old river bank
the quick brown fox jumps over the lazy dog and runs home again today
‹N12›
access account action actor address adjust advice agent alert answer apple area
WIFI:T:nopass;S:Guest;;
WIFI settings: type, name, password
WiFi: T=5 GHz; S=Strong
private_key_path = "/etc/ssl/key.pem"
"private_key_id": "<id>"
private_key_file: ~/.ssh/id_ed25519
st.‹h8›
st.markdown("# Title")
st.session_state.user_id
st.abc.def.ghi
sk_a_function_name_with_words
sk_learn_pipeline_transformers
pk_b_table_index_column
‹b64›
aGVsbG8gd29ybGQsIHRoaXMgaXMgb25seSBhIHNlbnRlbmNl
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
TmFtZSxBZ2UKRXZhLDMyCkJlbiw0MQpDYXJsLDU1Cg==
sha512-‹b86›==
integrity="sha384-‹b64›"
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹b43› eva@host
PublicKey = ‹b43›=
commit ‹h40›\nAuthor: Eva
‹h40›  dist/app.js\n‹h40›  dist/lib.js
key: value\nother: thing
keys:\n  - one\n  - two
token bucket: 10 per second
tokens: 4096 in, 512 out
secret: false
auth: none
cookie: none
Set-Cookie header is missing
const COOKIE_NAME = "sid";
docker run -e TZ=UTC -e POSTGRES_USER=app postgres:16
gh secret list
fly secrets list
wrangler secret put TOKEN
kubectl get secret r -o yaml
az login --identity
X-Request-Id: ‹h32›
apikey: required
git clone https://git.example.net/a/b.git
machine translation, login page, password field
""")

# Written from published documentation of formats, as the writer remembered it, before the table was read.
SECRETS_5 = rows(r"""
the service prints AVNS_«s19» once
waka_«h8»-«h4»-«h4»-«h4»-«h12» goes into the editor
hcaptcha wants ES_«h32»
kubeadm join 10.0.0.5:6443 --token «w6».«w16» --discovery-token-ca-cert-hash sha256:‹h64›
kubeadm init --token=«w6».«w16»
$ kubeadm token create --ttl 2h\n«w6».«w16»
nsc made «K58» for eva
paste «W52» into the wallet
ddp_«a36»
bkua_«h40» for the pipeline
pul-«h40»
dp.st.dev_eva.«a43»
sbp_«h40» from the dashboard
sb_secret_«s31»
napi_«w64»
rnd_«a28» works
vck_«a56»
nfp_«a40»
xkeysib-«h64»-«a16»
mlsn.«h64»
gsk_«a52»
r8_«a37»
csk-«w48»
lsv2_pt_«h32»_«h10»
sk-lf-«h8»-«h4»-«h4»-«h4»-«h12»
tvly-dev-«a32»
fc-«h32» in crawl.py
e2b_«h40»
pcsk_«a5»_«a63»
glsa_«a32»_«h8»
sntryu_«h64»
dt0c01.«u24».«u64»
xaat-«h8»-«h4»-«h4»-«h4»-«h12»
phx_«a43»
figd_«s40»
CFPAT-«s43»
mdb_sa_sk_«s40»
CCDB1_«a22»_«a40»
pnu_«a36»
tskey-auth-«a12»CNTRL-«a32»
duffel_live_«s43»
tfp_«s44»_«a14»
fio-u-«s64»
FLWSECK-«h32»-X
signkey-prod-«h64»
tr_pat_«w40»
cal_live_«h32»
apify_api_«a36»
AGE-SECRET-KEY-1«u58»
sgp_«h16»_«h40»
NpmToken.«h8»-«h4»-«h4»-«h4»-«h12»
amzn1.oa2-cs.v1.«h64»
jina_«h32»«s28»
tgp_v1_«s43»
nvapi-«s64»
rpa_«u40»
zpka_«h32»_«h8»
ory_pat_«a40»
nyk_v0_«a64»
os_v2_app_«w103»
CCIPAT_«a22»_«h40»
v2.«w20» is what AppVeyor shows
chpt_«h15» for Chromatic
""")
ALIKES_5 = rows(r"""
AVNS_SERVICE_PASSWORD_HINT
the prefix AVNS_ marks Aiven
waka_time_today_summary
waka_‹l8›-settings
ES_JAVA_OPTS=-Xms512m
ES_HOME=/usr/share/elasticsearch
ES_VERSION_8_15_0
kubeadm upgrade apply v1.31.2
kubeadm join 10.0.0.5:6443 --config join.yaml
kubeadm version 1.31.0 built from abcdef.main
kubectl get pods web01a.production0001
import module.submodule_names12
config.production_setting1
server1.internalexample1
SUCCESSFULLY COMPLETED THE MIGRATION OF ALL TABLES IN THE STORE
SU‹u56›
SA‹u56›
SAMPLE_DATA_FOR_THE_INTEGRATION_TESTS_OF_THE_WHOLE_SYSTEM_AA
L‹a51›
K‹a51›
5‹d50›
id 5‹h50› of the block
txid ‹h64›
bc1q‹w38›
1BoatSLRHtKNngkdXEeobR76b53LETtpyT
ddp_client_version
pul-request-1482
dp.st.margin_small
sbp_size_of_default_frame
napi_create_function
napi_get_value_string_utf8
rnd_seed_for_this_test_run_7
vck_width
nfp_budget_2026
gsk_settings_schema
r8_g8_b8_a8_unorm
csk-status-active
fc-cache -f -v
fc-list | grep DejaVu
e2b_test_suite_passes
pcsk_detect_state
phx_server_endpoint
figd_renderer
pnu_total
tfp_layers_dense_variational
tr_pat_match_first_row
cal_live_view_component_test
jina_embeddings_v3
rpa_robot_process_automation
ory_kratos_identity_schema
nyk_v0_preview
os_v2_application
v2.1.0 is what we ship
v2.production.endpoints
age1‹w58›
NpmToken.class.getName()
glsa_login_form
fio-u-option-list
signkey-prod-rotation
xaat-dataset-name
mdb_sa_schema
CFPAT-README
""")


def measure(redact, secrets, alikes, seed, verbose):
    source = random.Random(seed)
    missed = wrong = 0
    for template in secrets:
        text, parts = filled(template, source)
        output = redact(text)
        if any(leaked(part, output) for part in parts):
            missed += 1
            if verbose:
                print("LEAK", repr(text[:140]), "->", repr(output[:140]))
    for template in alikes:
        text, _ = filled(template, source)
        output = redact(text)
        if output != text:
            wrong += 1
            if verbose:
                print("CHANGED", repr(text[:140]), "->", repr(output[:140]))
    print(f"shapes {len(secrets)} leaks {missed} = {100 * missed / len(secrets):.1f} %")
    print(f"look-alikes {len(alikes)} changed {wrong} = {100 * wrong / len(alikes):.1f} %")


if __name__ == "__main__":
    from aether.redact.redact import redact

    which, half = sys.argv[1][:1], sys.argv[1][1:]
    rows_of = {"": slice(None), "a": slice(0, None, 2), "b": slice(1, None, 2)}[half]
    shapes, look_alikes = globals()["SECRETS_" + which][rows_of], globals()["ALIKES_" + which][rows_of]
    measure(redact, shapes, look_alikes, int(which), "-v" in sys.argv)
