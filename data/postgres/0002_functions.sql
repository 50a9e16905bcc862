-- The only ways to change a colony. They run with the rights of the owner of the schema and check those of the caller
-- (session_user), so that no member can write a table: history cannot be changed, and no revision left out.
--
-- Conditions: AE001 there is no such colony for this role, AE002 another history, AE003 the tables are incomplete.

-- The next two are called by the others only, which fix the search path and make the owner the current user. In
-- PL/pgSQL, which keeps its plans, because they are the first step of every call.
create function aether.right_of(p_colony integer) returns text
language plpgsql stable as $$
begin
    if pg_has_role(session_user, current_user, 'member') then
        return 'admin';
    end if;
    return (
        select m."right" from aether.members m join pg_roles r on r.rolname = m.role
        where m.colony = p_colony and pg_has_role(session_user, r.oid, 'member')
        order by m."right" = 'admin' desc, m."right" = 'write' desc limit 1
    );
end
$$;

create function aether.require(p_colony integer, p_right text) returns void
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

create function aether.readable() returns setof integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select m.colony from aether.members m join pg_roles r on r.rolname = m.role
    where pg_has_role(session_user, r.oid, 'member')
$$;

-- What a client asks first. Its name, arguments and the keys "version" and "colony" are the same in every version.
create function aether.hello(p_name text, p_replica text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    c aether.colonies;
    v constant integer := (select max(version) from aether.migrations);
    owner constant boolean := pg_has_role(session_user, current_user, 'member');
    missing text;
begin
    -- A restored backup has its rows first, then its keys and its row security.
    select string_agg(t.relname, ', ') into missing from pg_class t
    where t.relnamespace = 'aether'::regnamespace and t.relkind = 'r' and t.relname <> 'migrations' and not (
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

create function aether.seen(p_colony integer, p_replica text, p_revision bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    if p_replica = '' or pg_is_in_recovery() or current_setting('transaction_read_only')::boolean then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    insert into aether.replicas (colony, replica, revision) values (p_colony, p_replica, p_revision)
    on conflict (colony, replica) do update
        set revision = excluded.revision, role = excluded.role, seen_at = excluded.seen_at;
end
$$;

create function aether.head(p_colony integer, p_stream text, out stream bigint, out head bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    select s.stream, s.head into stream, head from aether.streams s where s.colony = p_colony and s.name = p_stream;
    head := coalesce(head, 0);
end
$$;

create function aether.heads(p_colony integer, p_prefix text) returns table (name text, head bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    return query select s.name, s.head from aether.streams s
        where s.colony = p_colony and starts_with(s.name, p_prefix) order by s.name;
end
$$;

-- The lines after a mark: as many as are allowed, and not more bytes, but at least one.
create function aether.lines_after(
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
    if p_checksum <> '' and p_mark > coalesce(s.start, 0) then
        select e.checksum into known from aether.entries e
        where e.colony = p_colony and e.stream = s.stream and e.revision = p_mark;
        if known is distinct from convert_to(p_checksum, 'UTF8') then
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
create function aether.lock_stream(p_colony integer, p_stream text, p_wait integer) returns aether.streams
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

-- Append the lines if the mark is the end of the stream; else return what is new, so that nobody has to ask again.
create function aether.append_lines(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_lines bytea[], p_key text, p_wait integer,
    out done boolean, out head bigint, out news bytea[], out revision bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s bigint;
    added constant integer := cardinality(p_lines);
    last constant bytea := p_lines[added];
begin
    perform aether.require(p_colony, 'write'), set_config('lock_timeout', p_wait::text, true);
    done := true;
    if p_key <> '' then
        perform aether.lock_stream(p_colony, p_stream, p_wait);
        select t.head, k.revision into head, revision from aether.streams t
            join aether.keys k on k.colony = t.colony and k.stream = t.stream and k.key = p_key
            where t.colony = p_colony and t.name = p_stream;
        if found then
            return;
        end if;
    end if;
    for attempt in 1 .. 2 loop
        -- This waits for whoever has the row, and then compares with what they left.
        update aether.streams t
            set head = p_mark + added, checksum = coalesce(substr(last, length(last) - 18, 16), t.checksum)
            where t.colony = p_colony and t.name = p_stream and t.head = p_mark
                and (p_checksum = '' or t.head = t.start or t.checksum = convert_to(p_checksum, 'UTF8'))
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
            revision := p_mark + 1;
            if p_key <> '' and added > 0 then
                insert into aether.keys values (p_colony, s, p_key, revision);
            end if;
            -- No name of a stream: every role of the database may listen.
            perform pg_notify('aether_' || p_colony, s || ' ' || head);
            return;
        end if;
        exit when exists (select from aether.streams t where t.colony = p_colony and t.name = p_stream);
        perform aether.lock_stream(p_colony, p_stream, p_wait);  -- makes it
    end loop;
    done := false;
    revision := 0;
    -- The answer may already have the end that others reached meanwhile; only if it is another history, this raises.
    select l.head, l.news into head, news
    from aether.lines_after(p_colony, p_stream, p_mark, p_checksum, 256, 1000000) l;
end
$$;

-- Take the turn in a stream until the transaction ends, for so many milliseconds at most, and return what is new.
create function aether.take_turn(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_limit integer, p_bytes bigint,
    p_wait integer, p_idle integer, out head bigint, out news bytea[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform set_config('idle_in_transaction_session_timeout', p_idle::text, true);
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
create function aether.sync() returns void language plpgsql as $$
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
create procedure aether.append(
    p_colony integer, p_stream text, p_mark bigint, p_checksum text, p_lines bytea[], p_key text, p_wait integer,
    inout done boolean, inout head bigint, inout news bytea[], inout revision bigint
)
language plpgsql as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    select a.done, a.head, a.news, a.revision into done, head, news, revision
    from aether.append_lines(p_colony, p_stream, p_mark, p_checksum, p_lines, p_key, p_wait) a;
    commit;
    perform aether.sync();
    commit;
end
$$;

create procedure aether.read_after(
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

create function aether.put_blob(p_colony integer, p_data bytea) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    found constant text := encode(sha256(p_data), 'hex');
begin
    perform aether.require(p_colony, 'write');
    insert into aether.blobs (colony, name, data) values (p_colony, found, p_data) on conflict do nothing;
    return found;
end
$$;

create function aether.get_blob(p_colony integer, p_name text) returns bytea
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    return (select data from aether.blobs where colony = p_colony and name = p_name);
end
$$;

create function aether.set_base(p_colony integer, p_stream text, p_revision bigint, p_blob text, p_wait integer)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s constant aether.streams := aether.lock_stream(p_colony, p_stream, p_wait);
begin
    if p_blob <> '' and not exists (select from aether.blobs where colony = p_colony and name = p_blob) then
        raise exception 'there is no blob %', p_blob using errcode = 'no_data_found';
    elsif s.head = s.start then
        update aether.streams set start = p_revision, head = p_revision, base = p_revision, blob = p_blob
        where stream = s.stream;
    elsif p_revision > s.head or p_revision < s.start then
        raise exception 'the stream has revisions % to %, and revision % is not among them', s.start, s.head, p_revision
            using errcode = 'AE002';
    elsif p_revision >= s.base then
        update aether.streams set base = p_revision, blob = p_blob where stream = s.stream;
    end if;
end
$$;

create function aether.base(p_colony integer, p_stream text, out base bigint, out blob text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'read');
    select s.base, s.blob into base, blob from aether.streams s where s.colony = p_colony and s.name = p_stream;
    base := coalesce(base, 0);
    blob := coalesce(blob, '');
end
$$;

-- What a complete backup would have and these tables do not.
create function aether.faults(p_colony integer) returns setof text
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
