-- The tables of shared colonies. All of them are in the schema "aether", which belongs to the role that made it.
--
-- A line is kept as bytes. JSONB would lose the order of keys, repeated keys, "\u0000", halves of surrogate pairs and
-- digits of large numbers, and replicas compare checksums of the bytes. To look at one:
--   select revision, convert_from(line, 'UTF8')::json from aether.entries order by revision desc limit 5;

create table aether.colonies (
    colony    integer generated always as identity primary key,
    name      text not null unique check (name <> ''),
    -- Made once: two colonies of one name, in two databases or one after the other, have two.
    identity  text not null unique default replace(gen_random_uuid()::text, '-', ''),
    made_by   text not null default session_user,
    made_at   timestamptz not null default clock_timestamp()
);

create table aether.streams (
    colony    integer not null references aether.colonies,
    name      text not null,
    stream    bigint generated always as identity unique,
    start     bigint not null default 0,   -- the first line is start + 1
    origin    bytea,                       -- the checksum of the line at "start", which the base has
    head      bigint not null default 0,   -- the revision of the last line
    checksum  bytea,                       -- that of the last line
    base      bigint not null default 0,   -- the newest snapshot: its revision ...
    blob      text not null default '',    -- ... and its content
    primary key (colony, name)
) with (fillfactor = 50);  -- the head changes with every append: its new version finds room in the same page

-- Only one function writes it, and what it checks is not checked again by constraints, which cost an append a tenth.
create table aether.entries (
    colony    integer not null,
    stream    bigint not null,
    revision  bigint not null,
    line      bytea not null,
    checksum  bytea not null,              -- what replicas compare: the 16 bytes before the last three of the line
    author    text not null default session_user,
    at        timestamptz not null default clock_timestamp(),
    primary key (colony, stream, revision)
);

create table aether.blobs (
    colony    integer not null references aether.colonies,
    name      text not null,
    data      bytea not null,
    at        timestamptz not null default clock_timestamp(),
    primary key (colony, name),
    check (name = encode(sha256(data), 'hex'))
);

-- The rights of database roles. A role may be a group: its members have its right.
create table aether.members (
    colony    integer not null references aether.colonies,
    role      text not null,
    "right"   text not null check ("right" in ('read', 'write', 'admin')),
    granted_by text not null default session_user,
    at        timestamptz not null default clock_timestamp(),
    primary key (colony, role)
);

create table aether.replicas (
    colony    integer not null references aether.colonies,
    replica   text not null,
    role      text not null default session_user,
    revision  bigint not null default 0,
    seen_at   timestamptz not null default clock_timestamp(),
    primary key (colony, replica)
);

-- The blobs that the newest base of a stream names: no writer removes them.
create table aether.kept (
    colony    integer not null references aether.colonies,
    stream    bigint not null,
    name      text not null,
    primary key (colony, stream, name)
);

-- One role of the database for each right, and row security by colony.
--
-- The roles carry what may be called; which colony a role may call it for is a row of "members". Roles belong to the
-- whole server: a member who has no row here sees nothing here, whatever roles another database has given.

do $$
declare
    made text;
begin
    foreach made in array array['aether_read', 'aether_write', 'aether_admin'] loop
        if not exists (select from pg_roles where rolname = made) then
            execute format('create role %I nologin', made);
        end if;
    end loop;
    if not pg_has_role('aether_write', 'aether_read', 'member') then
        grant aether_read to aether_write;
    end if;
    if not pg_has_role('aether_admin', 'aether_write', 'member') then
        grant aether_write to aether_admin;
    end if;
end
$$;
