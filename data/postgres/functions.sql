-- The only ways to change a colony. They run with the rights of the owner of the schema and check those of the caller
-- (session_user), so that no member can write a table: history cannot be changed, and no revision left out.
--
-- This file is run again after each migration, so it makes nothing twice.
-- Conditions: AE001 there is no such colony for this role, AE002 another history, AE003 the tables are incomplete,
-- AE004 and AE005 a role cannot be given or inherited, AE006 no replica would take the line, AE007 the quota is used up.

-- Whether the caller has a role: a group whose right counts, or the owner of the tables. In SQL, which is planned as a
-- part of the callers.
create or replace function aether.has_role(p_role name) returns boolean
language sql stable as $$
    select pg_has_role(session_user, p_role,
        case when current_setting('server_version_num')::integer < 160000 then 'member' else 'usage, set' end)
$$;

-- The next two are called by the others only, which fix the search path and make the owner the current user. In
-- PL/pgSQL, which keeps its plans, because they are the first step of every call.
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

create or replace function aether.require(p_colony integer, p_right text) returns void
language plpgsql stable as $$
declare
    ranks constant text[] := array['read', 'write', 'admin'];
    found text;
begin
    select m."right" into found from aether.members m where m.colony = p_colony and m.role = session_user;
    if found = p_right then
        return;  -- most calls: the role itself has just this right
    end if;
    found := aether.right_of(p_colony);
    if found is null then
        raise exception 'role "%" has no right in this colony', session_user using errcode = 'AE001';
    elsif array_position(ranks, found) < array_position(ranks, p_right) then
        raise exception 'role "%" has the right %, not %', session_user, found, p_right
            using errcode = 'insufficient_privilege';
    end if;
end
$$;

create or replace function aether.readable() returns setof integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select m.colony from aether.members m join pg_roles r on r.rolname = m.role where aether.has_role(r.rolname)
$$;

-- What a client asks first. Its name, arguments and the keys "version" and "colony" are the same in every version.
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
    from unnest(array['colonies', 'streams', 'entries', 'blobs', 'kept', 'members', 'replicas']) known
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
        'member', session_user
    );
end
$$;

create or replace function aether.seen(p_colony integer, p_replica text, p_revision bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    if p_replica = '' or pg_is_in_recovery() or current_setting('transaction_read_only')::boolean then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    -- A reader changes its own rows alone, and nobody makes any number of them.
    update aether.replicas r set revision = p_revision, role = session_user, seen_at = clock_timestamp()
    where r.colony = p_colony and r.replica = p_replica
        and (r.role = session_user or aether.right_of(p_colony) <> 'read');
    if not found and length(p_replica) <= 200 and (
        select count(*) from aether.replicas r where r.colony = p_colony and r.role = session_user) < 1000
    then
        insert into aether.replicas (colony, replica, revision) values (p_colony, p_replica, p_revision)
        on conflict do nothing;
    end if;
end
$$;

create or replace function aether.head(
    p_colony integer, p_stream text, out head bigint, out base bigint, out blob text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    select s.head, s.base, s.blob into head, base, blob from aether.streams s
        where s.colony = p_colony and s.name = p_stream;
end
$$;

create or replace function aether.heads(p_colony integer, p_prefix text)
returns table (name text, head bigint, checksum bytea)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    return query select s.name, s.head, s.checksum from aether.streams s
        where s.colony = p_colony and starts_with(s.name, p_prefix) order by s.name;
end
$$;

-- The lines after a mark: as many as are allowed, and not more bytes, but at least one.
create or replace function aether.lines_after(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_limit integer, p_bytes bigint,
    out head bigint, out news bytea[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s aether.streams;
    known bytea;
    last bigint;
begin
    perform aether.require(p_colony, 'read');
    select * into s from aether.streams t where t.colony = p_colony and t.name = p_stream;
    head := coalesce(s.head, 0);
    if p_mark > head then
        raise exception 'the stream ends at revision %, before revision %', head, p_mark using errcode = 'AE002';
    elsif p_mark < coalesce(s.start, 0) then
        raise exception 'the stream starts after revision %', s.start using errcode = 'AE002';
    end if;
    if p_checksum <> '' then
        if p_mark > coalesce(s.start, 0) then
            select e.checksum into known from aether.entries e
            where e.colony = p_colony and e.stream = s.stream and e.revision = p_mark;
            known := coalesce(known, '');
        else
            known := s.origin;  -- not compared if a base of an earlier release has made the start
        end if;
        if known <> convert_to(p_checksum, 'UTF8') then
            raise exception 'the stream has another line at revision %', p_mark using errcode = 'AE002';
        end if;
    end if;
    select coalesce(array_agg(l.line order by l.revision), '{}'), coalesce(max(l.revision), p_mark)
        into news, last
    from (
        select e.revision, e.line, sum(length(e.line)) over (order by e.revision) as size
        from aether.entries e
        where e.colony = p_colony and e.stream = s.stream
            and e.revision > p_mark and e.revision <= p_mark + p_limit
    ) l where l.size <= p_bytes or l.revision = p_mark + 1;
    if last <> p_mark + cardinality(news) or (last = p_mark and head > p_mark and p_limit > 0) then
        raise exception 'lines after revision % are missing', p_mark using errcode = 'AE003';
    end if;
    head := greatest(head, last);  -- others may have appended between the two statements
end
$$;

-- Take the turn in a stream: the row of its head, until the transaction ends. A stream that nobody wrote to is made.
create or replace function aether.lock_stream(p_colony integer, p_stream text, p_wait integer) returns aether.streams
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s aether.streams;
begin
    perform aether.require(p_colony, 'write');
    perform set_config('lock_timeout', p_wait::text, true);
    select * into s from aether.streams t where t.colony = p_colony and t.name = p_stream for no key update;
    if s.stream is null then
        insert into aether.streams (colony, name) values (p_colony, p_stream) on conflict do nothing;
        select * into s from aether.streams t where t.colony = p_colony and t.name = p_stream for no key update;
    end if;
    return s;
end
$$;

-- Refuse what no replica would take, as far as that is seen here: what is no sealed line of JSON, a line of another
-- number or time, one that does not end in the name of the role that sends it, and streams that an admin writes.
create or replace function aether.require_lines(p_colony integer, p_stream text, p_mark bigint, p_lines bytea[])
returns void
language plpgsql stable as $$
declare
    line bytea;
    body bytea;
    shape text;
    number bigint := p_mark;
    author constant bytea := convert_to(',"member":' || to_json(session_user::text), 'UTF8');
begin
    if p_stream not in ('', 'files') and not starts_with(p_stream, 'conversations/') then
        perform aether.require(p_colony, 'admin');
    end if;
    if p_mark is null or p_lines is null or array_ndims(p_lines) > 1 or array_lower(p_lines, 1) <> 1
        or array_position(p_lines, null) > 0
    then
        raise exception 'this is no list of lines' using errcode = 'AE006';
    end if;
    foreach line in array p_lines loop
        number := number + 1;
        body := substr(line, 1, greatest(length(line) - 32, 0));
        shape := encode(substr(line, 1, 80), 'escape');
        if length(line) > 67108864 or position('\x0a'::bytea in line) <> length(line)
            or line <> body || convert_to(format(E',"checksum":"%s"}\n', left(encode(sha256(body || '}'), 'hex'), 16)), 'UTF8')
            or convert_from(body || '}', 'UTF8')::json is null
        then
            raise exception 'a line is damaged, or too long' using errcode = 'AE006';
        elsif p_stream in ('', 'files') and substr(body, length(body) - length(author) + 1) <> author then
            raise exception 'a line does not name its author "%"', session_user using errcode = 'AE006';
        elsif p_stream = '' and shape !~ ('^\{"revision":' || number || ',"at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"') then
            raise exception 'a line is not that of revision %, or has no time', number using errcode = 'AE006';
        elsif p_stream = '' and substring(shape from '"at":"([^"]+)')::timestamptz > now() + interval '1 day' then
            raise exception 'a line is more than a day ahead of the clock of the server' using errcode = 'AE006';
        end if;
    end loop;
end
$$;

-- Append the lines if the mark is the end of the stream; else return what is new, so that nobody has to ask again.
create or replace function aether.append_lines(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_lines bytea[], p_wait integer,
    out done boolean, out head bigint, out news bytea[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s bigint;
    added constant integer := cardinality(p_lines);
    last constant bytea := p_lines[added];
begin
    perform aether.require(p_colony, 'write'), set_config('lock_timeout', p_wait::text, true);
    perform aether.require_lines(p_colony, p_stream, p_mark, p_lines);
    done := true;
    for attempt in 1 .. 2 loop
        -- This waits for whoever has the row, and then compares with what they left.
        update aether.streams t
            set head = p_mark + added, checksum = coalesce(substr(last, length(last) - 18, 16), t.checksum)
            where t.colony = p_colony and t.name = p_stream and t.head = p_mark
                and (p_checksum = '' or t.checksum is null or t.checksum = convert_to(p_checksum, 'UTF8'))
            returning t.stream, t.head into s, head;
        if s is not null then
            if added = 1 then
                insert into aether.entries (colony, stream, revision, line, checksum)
                    values (p_colony, s, head, last, substr(last, length(last) - 18, 16));
            else
                insert into aether.entries (colony, stream, revision, line, checksum)
                    select p_colony, s, p_mark + l.nth, l.line, substr(l.line, length(l.line) - 18, 16)
                    from unnest(p_lines) with ordinality l (line, nth);
            end if;
            return;
        end if;
        exit when exists (select from aether.streams t where t.colony = p_colony and t.name = p_stream);
        perform aether.lock_stream(p_colony, p_stream, p_wait);  -- makes it
    end loop;
    done := false;
    -- The answer may already have the end that others reached meanwhile; only if it is another history, this raises.
    select l.head, l.news into head, news
    from aether.lines_after(p_colony, p_stream, p_mark, p_checksum, 256, 1000000) l;
end
$$;

-- Take the turn in a stream until the transaction ends, for so many milliseconds at most, and return what is new.
create or replace function aether.take_turn(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_limit integer, p_bytes bigint,
    p_wait integer, p_idle integer, out head bigint, out news bytea[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform set_config('idle_in_transaction_session_timeout', least(greatest(p_idle, 1), 5000)::text, true);
    perform aether.lock_stream(p_colony, p_stream, p_wait);
    select l.head, l.news into head, news
    from aether.lines_after(p_colony, p_stream, p_mark, p_checksum, p_limit, p_bytes) l;
    -- The commit of this transaction frees the row before the disk is synced; aether.sync() follows it.
    perform set_config('synchronous_commit', 'off', true);
end
$$;

-- Everything that is visible to others is on the disk, and where standbys are synchronous, there too, when the
-- transaction of this call has been committed: a commit is written after all commits before it, and many callers share
-- one sync of the disk.
create or replace function aether.sync() returns void language plpgsql as $$
begin
    if not pg_is_in_recovery() then
        if current_setting('synchronous_commit') = 'off' then
            perform set_config('synchronous_commit', 'on', true);
        end if;
        perform pg_logical_emit_message(true, 'aether', '');
    end if;
end
$$;

-- The row of the head is free as soon as the lines are visible, so that the next writer can go on from them while the
-- disk works: one sync commits many writers. Nobody is answered before it, neither the writer nor a reader.
create or replace procedure aether.append(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_lines bytea[], p_wait integer,
    inout done boolean, inout head bigint, inout news bytea[]
)
language plpgsql as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    select a.done, a.head, a.news into done, head, news
    from aether.append_lines(p_colony, p_stream, p_mark, p_checksum, p_lines, p_wait) a;
    commit;
    perform aether.sync();
    commit;
end
$$;

create or replace procedure aether.read_after(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_limit integer, p_bytes bigint,
    inout head bigint, inout news bytea[]
)
language plpgsql as $$
begin
    select l.head, l.news into head, news
    from aether.lines_after(p_colony, p_stream, p_mark, p_checksum, p_limit, p_bytes) l;
    commit;
    if cardinality(news) > 0 then
        perform aether.sync();
        commit;
    end if;
end
$$;

-- Put the line that every replica makes of one it cannot read in its place. Marks compare the checksum that it had.
create or replace function aether.remove_line(p_colony integer, p_revision bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    e aether.entries;
    at text;
    body text;
begin
    perform aether.require(p_colony, 'admin');
    select n.* into e from aether.entries n join aether.streams s using (colony, stream)
        where n.colony = p_colony and s.name = '' and n.revision = p_revision;
    if e.line is null then
        return false;
    end if;
    at := substring(encode(substr(e.line, 1, 80), 'escape')
        from '^\{"revision":\d+,"at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"');
    body := format('{"revision":%s,"at":"%s","by":"aether","operation":"set aside","replaces":"%s"', p_revision,
        coalesce(at, '1970-01-01T00:00:00.000000Z'), substring(encode(e.checksum, 'escape') from '^[0-9a-f]{16}$'));
    update aether.entries n
        set line = convert_to(format(E'%s,"checksum":"%s"}\n', body, left(encode(sha256(convert_to(body || '}', 'UTF8')), 'hex'), 16)), 'UTF8')
        where n.colony = p_colony and n.stream = e.stream and n.revision = p_revision;
    return true;
end
$$;

create or replace function aether.put_blob(p_colony integer, p_data bytea) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    found constant text := encode(sha256(p_data), 'hex');
    free bigint;
begin
    perform aether.require(p_colony, 'write');
    -- One at a time for each member, so that calls at once do not pass it together.
    perform pg_advisory_xact_lock(p_colony, hashtext(session_user));
    select c.quota - coalesce((
            select sum(octet_length(b.data)) from aether.blobs b where b.colony = p_colony and b.author = session_user
        ), 0) - octet_length(p_data) into free from aether.colonies c where c.colony = p_colony;
    if free < 0 and aether.right_of(p_colony) <> 'admin' then
        raise exception 'the files of role "%" would have % bytes more than its quota', session_user, -free
            using errcode = 'AE007';
    end if;
    insert into aether.blobs (colony, name, data, author) values (p_colony, found, p_data, session_user)
        on conflict do nothing;
    return found;
end
$$;

create or replace function aether.get_blob(p_colony integer, p_name text) returns bytea
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    return (select data from aether.blobs where colony = p_colony and name = p_name);
end
$$;

-- Returns the blob of the base before; null if another has made a newer one.
create or replace function aether.set_base(
    p_colony integer, p_stream text, p_revision bigint, p_checksum text, p_blob text, p_parts text[], p_wait integer
)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s aether.streams;
    known constant bytea := convert_to(nullif(p_checksum, ''), 'UTF8');
begin
    perform aether.require(p_colony, 'admin');
    s := aether.lock_stream(p_colony, p_stream, p_wait);
    if p_blob <> '' and not exists (select from aether.blobs where colony = p_colony and name = p_blob) then
        raise exception 'there is no blob %', p_blob using errcode = 'no_data_found';
    elsif s.head = s.start then
        update aether.streams
        set start = p_revision, head = p_revision, base = p_revision, blob = p_blob, checksum = known, origin = known
        where stream = s.stream;
    elsif p_revision > s.head or p_revision < s.start then
        raise exception 'the stream has revisions % to %, and revision % is not among them', s.start, s.head, p_revision
            using errcode = 'AE002';
    elsif p_revision >= s.base then
        update aether.streams set base = p_revision, blob = p_blob where stream = s.stream;
    else
        return null;
    end if;
    delete from aether.kept k where k.colony = p_colony and k.stream = s.stream;
    insert into aether.kept select distinct p_colony, s.stream, part from unnest(p_parts) part;
    return s.blob;
end
$$;

-- What a complete backup would have and these tables do not.
create or replace function aether.faults(p_colony integer) returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    return query
        select format('stream "%s" has %s of its lines %s to %s', s.name, count(e.revision), s.start + 1, s.head)
        from aether.streams s left join aether.entries e
            on e.colony = s.colony and e.stream = s.stream and e.revision between s.start + 1 and s.head
        where s.colony = p_colony group by s.name, s.start, s.head having count(e.revision) <> s.head - s.start
        union all
        select format('stream "%s" has lines after its head %s', s.name, s.head) from aether.streams s
        where s.colony = p_colony and exists (
            select from aether.entries e where e.colony = s.colony and e.stream = s.stream and e.revision > s.head)
        union all
        select format('the snapshot of stream "%s" is missing', s.name) from aether.streams s
        where s.colony = p_colony and s.blob <> '' and not exists (
            select from aether.blobs b where b.colony = s.colony and b.name = s.blob);
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

create or replace function aether.revoke_right(p_colony integer, p_role text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'admin');
    delete from aether.members where colony = p_colony and role = p_role;
    return found;
end
$$;

create or replace function aether.drop_blob(p_colony integer, p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'write');
    delete from aether.blobs b where b.colony = p_colony and b.name = p_name
        and not exists (select from aether.streams s where s.colony = p_colony and s.blob = p_name)
        and not exists (select from aether.kept k where k.colony = p_colony and k.name = p_name);
end
$$;

do $$
declare
    name text;
begin
    foreach name in array array['colonies', 'streams', 'entries', 'blobs', 'kept', 'members', 'replicas'] loop
        execute format('alter table aether.%I enable row level security', name);
        execute format('drop policy if exists members_read on aether.%I', name);
        execute format('create policy members_read on aether.%I for select '
            'using (colony = any (array(select aether.readable())))', name);
    end loop;
end
$$;

revoke all on all tables in schema aether from public;
revoke all on all routines in schema aether from public;

grant usage on schema aether to aether_read;
grant select on all tables in schema aether to aether_read;
grant execute on function
    aether.readable(), aether.hello(text, text), aether.seen(integer, text, bigint),
    aether.head(integer, text), aether.heads(integer, text),
    aether.lines_after(integer, text, bigint, text, integer, bigint),
    aether.get_blob(integer, text), aether.faults(integer), aether.sync()
    to aether_read;
grant execute on procedure
    aether.read_after(integer, text, bigint, text, integer, bigint, bigint, bytea[])
    to aether_read;
grant execute on function
    aether.take_turn(integer, text, bigint, text, integer, bigint, integer, integer),
    aether.append_lines(integer, text, bigint, text, bytea[], integer),
    aether.put_blob(integer, bytea), aether.drop_blob(integer, text)
    to aether_write;
grant execute on procedure
    aether.append(integer, text, bigint, text, bytea[], integer, boolean, bigint, bytea[])
    to aether_write;
grant execute on function
    aether.set_base(integer, text, bigint, text, text, text[], integer),
    aether.remove_line(integer, bigint), aether.create_colony(text), aether.grant_right(integer, text, text), aether.revoke_right(integer, text)
    to aether_admin;
