-- Roles as of version 16 of the server: a membership says whether the member inherits the role, and may become it. Who
-- makes a role is its member with neither, only to give it to others; 'member' is true of that too.

-- Whether the caller has a role: a group whose right counts, or the owner of the tables. In SQL, which is planned as a
-- part of the callers.
create function aether.has_role(p_role name) returns boolean
language sql stable as $$
    select pg_has_role(session_user, p_role,
        case when current_setting('server_version_num')::integer < 160000 then 'member' else 'usage, set' end)
$$;

revoke all on function aether.has_role(name) from public;

create or replace function aether.right_of(p_colony integer) returns text
language plpgsql stable as $$
begin
    -- Cheap and mostly the answer: no member of the owner, and the role itself.
    if pg_has_role(session_user, current_user, 'member') and aether.has_role(current_user) then
        return 'admin';
    end if;
    return (
        select m."right" from aether.members m join pg_roles r on r.rolname = m.role
        where m.colony = p_colony and (m.role = session_user or aether.has_role(r.rolname))
        order by m."right" = 'admin' desc, m."right" = 'write' desc limit 1
    );
end
$$;

create or replace function aether.readable() returns setof integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select m.colony from aether.members m join pg_roles r on r.rolname = m.role where aether.has_role(r.rolname)
$$;

create or replace function aether.hello(p_name text, p_replica text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    c aether.colonies;
    v constant integer := (select max(version) from aether.migrations);
    owner constant boolean := aether.has_role(current_user);
    missing text;
begin
    -- A restored backup has its rows first, then its keys and its row security. The owner may add tables and partitions.
    select string_agg(known, ', ') into missing
    from unnest(array['colonies', 'streams', 'entries', 'keys', 'blobs', 'kept', 'members', 'replicas']) known
    left join pg_class t
        on t.relnamespace = 'aether'::regnamespace and t.relname = known and t.relkind in ('r', 'p')
    where t.oid is null or not (
        t.relrowsecurity
        and exists (select from pg_index i where i.indrelid = t.oid and i.indisprimary and i.indisvalid)
        and exists (select from pg_policy p where p.polrelid = t.oid)
    );
    if missing is not null then
        raise exception 'keys or row security are missing of: %', missing using errcode = 'AE003';
    end if;
    select * into c from aether.colonies where name = p_name;
    if c.colony is null or aether.right_of(c.colony) is null then
        return jsonb_build_object('version', v, 'colony', null, 'owner', owner);
    end if;
    if exists (
        select from aether.streams s where s.colony = c.colony and s.name = '' and s.head > s.start and not exists (
            select from aether.entries e
            where e.colony = c.colony and e.stream = s.stream and e.revision = s.head and e.checksum = s.checksum
        )
    ) then
        raise exception 'the last line of the journal is missing' using errcode = 'AE003';
    end if;
    return jsonb_build_object(
        'version', v, 'colony', c.colony, 'identity', c.identity, 'right', aether.right_of(c.colony),
        'pid', pg_backend_pid()
    );
end
$$;

create or replace function aether.create_colony(p_name text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made integer;
begin
    if not aether.has_role(current_user) and not exists (
        select from aether.members m join pg_roles r on r.rolname = m.role
        where m."right" = 'admin' and aether.has_role(r.rolname)
    ) then
        raise exception 'role "%" is no admin of a colony of this database', session_user
            using errcode = 'insufficient_privilege';
    end if;
    insert into aether.colonies (name) values (p_name) returning colony into made;
    if not exists (select from pg_roles where rolname = session_user and rolsuper) then
        insert into aether.members (colony, role, "right") values (made, session_user, 'admin');
    end if;
    return made;
end
$$;

-- A member must inherit the role that carries what may be called. Before version 16, one with "noinherit" never does.
create or replace function aether.grant_right(p_colony integer, p_role text, p_right text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    carrier constant text := 'aether_' || p_right;
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
    if not exists (
        select from pg_auth_members g where g.roleid = to_regrole(carrier)
            and g.member = to_regrole(quote_ident(p_role))
            and coalesce((to_jsonb(g) ->> 'inherit_option')::boolean, true)
    ) then
        begin
            execute format('grant %I to %I', carrier, p_role)
                || case when current_setting('server_version_num')::integer < 160000 then '' else ' with inherit true' end;
        exception when insufficient_privilege then
            raise exception 'the owner "%" of the tables may not give the role "%" to others', current_user, carrier
                using errcode = 'AE004';
        end;
    end if;
    if not pg_has_role(p_role, carrier, 'usage') then
        raise exception 'the role "%" inherits nothing', p_role using errcode = 'AE005';
    end if;
end
$$;
