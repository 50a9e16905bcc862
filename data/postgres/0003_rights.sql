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

create function aether.create_colony(p_name text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made integer;
begin
    insert into aether.colonies (name) values (p_name) returning colony into made;
    if not exists (select from pg_roles where rolname = session_user and rolsuper) then
        insert into aether.members (colony, role, "right") values (made, session_user, 'admin');
    end if;
    return made;
end
$$;

create function aether.grant_right(p_colony integer, p_role text, p_right text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'admin');
    if not exists (select from pg_roles where rolname = p_role) or p_role in (
        'aether_read', 'aether_write', 'aether_admin') or starts_with(p_role, 'pg_')
    then
        raise exception 'there is no role "%" that could be a member', p_role using errcode = 'undefined_object';
    end if;
    insert into aether.members (colony, role, "right") values (p_colony, p_role, p_right)
    on conflict (colony, role) do update
        set "right" = excluded."right", granted_by = excluded.granted_by, at = excluded.at;
    execute format('grant %I to %I', 'aether_' || p_right, p_role);
end
$$;

create function aether.revoke_right(p_colony integer, p_role text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'admin');
    delete from aether.members where colony = p_colony and role = p_role;
    return found;
end
$$;

alter table aether.colonies enable row level security;
alter table aether.streams enable row level security;
alter table aether.entries enable row level security;
alter table aether.keys enable row level security;
alter table aether.blobs enable row level security;
alter table aether.members enable row level security;
alter table aether.replicas enable row level security;

create policy members_read on aether.colonies for select using (colony = any (array(select aether.readable())));
create policy members_read on aether.streams for select using (colony = any (array(select aether.readable())));
create policy members_read on aether.entries for select using (colony = any (array(select aether.readable())));
create policy members_read on aether.keys for select using (colony = any (array(select aether.readable())));
create policy members_read on aether.blobs for select using (colony = any (array(select aether.readable())));
create policy members_read on aether.members for select using (colony = any (array(select aether.readable())));
create policy members_read on aether.replicas for select using (colony = any (array(select aether.readable())));

revoke all on all tables in schema aether from public;
revoke all on all routines in schema aether from public;

grant usage on schema aether to aether_read;
grant select on all tables in schema aether to aether_read;
grant execute on function
    aether.readable(), aether.hello(text, text), aether.seen(integer, text, bigint),
    aether.head(integer, text), aether.heads(integer, text), aether.base(integer, text),
    aether.lines_after(integer, text, bigint, text, integer, bigint),
    aether.get_blob(integer, text), aether.faults(integer), aether.sync()
    to aether_read;
grant execute on procedure
    aether.read_after(integer, text, bigint, text, integer, bigint, bigint, bytea[])
    to aether_read;
grant execute on function
    aether.take_turn(integer, text, bigint, text, integer, bigint, integer, integer),
    aether.append_lines(integer, text, bigint, text, bytea[], text, integer),
    aether.put_blob(integer, bytea), aether.set_base(integer, text, bigint, text, integer)
    to aether_write;
grant execute on procedure
    aether.append(integer, text, bigint, text, bytea[], text, integer, boolean, bigint, bytea[], bigint)
    to aether_write;
grant execute on function
    aether.create_colony(text), aether.grant_right(integer, text, text), aether.revoke_right(integer, text)
    to aether_admin;
