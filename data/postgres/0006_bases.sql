-- Bases: the lines after one follow it by its checksum, and its blobs stay. Limits for turns, sightings and grants.

alter table aether.streams add column origin bytea;  -- the checksum of the line at "start", which the base has

-- The blobs that the newest base of a stream names: no writer removes them.
create table aether.kept (
    colony    integer not null references aether.colonies,
    stream    bigint not null,
    name      text not null,
    primary key (colony, stream, name)
);
alter table aether.kept enable row level security;
create policy members_read on aether.kept for select using (colony = any (array(select aether.readable())));
grant select on aether.kept to aether_read;

-- Those of the bases that are there. One that cannot be read is refused by who joins, and must not stop this.
do $$
declare
    s aether.streams;
begin
    for s in select * from aether.streams where blob <> '' loop
        begin
            insert into aether.kept
            select distinct s.colony, s.stream, part
            from aether.blobs b,
                jsonb_array_elements(convert_from(b.data, 'UTF8')::jsonb -> 'files') file,
                jsonb_array_elements_text(file -> 'parts') part
            where b.colony = s.colony and b.name = s.blob;
        exception when others then
            raise notice 'the base of stream % cannot be read', s.stream;
        end;
    end loop;
end
$$;

create or replace function aether.hello(p_name text, p_replica text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    c aether.colonies;
    v constant integer := (select max(version) from aether.migrations);
    owner constant boolean := pg_has_role(session_user, current_user, 'member');
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

-- A key that was used before is answered with its line.
create or replace function aether.append_lines(
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
        -- With its line: whoever sends the change from a copy has made another one of it.
        select t.head, k.revision, case when added > 0 then array[e.line] end into head, revision, news from aether.streams t
            join aether.keys k on k.colony = t.colony and k.stream = t.stream and k.key = p_key
            left join aether.entries e
                on e.colony = t.colony and e.stream = t.stream and e.revision = k.revision
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

-- A turn ends, whatever its writer asks for.
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

create or replace function aether.drop_blob(p_colony integer, p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'write');
    delete from aether.blobs b where b.colony = p_colony and b.name = p_name
        and not exists (select from aether.streams s where s.colony = p_colony and s.blob = p_name)
        and not exists (select from aether.kept k where k.colony = p_colony and k.name = p_name);
end
$$;

drop function aether.set_base(integer, text, bigint, text, integer);

-- Returns the blob of the base before; null if another has made a newer one.
create function aether.set_base(
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

revoke all on function aether.set_base(integer, text, bigint, text, text, text[], integer) from public;
grant execute on function aether.set_base(integer, text, bigint, text, text, text[], integer) to aether_admin;

-- As before; the roles belong to the whole server, and the owner of another database may have made them.
create or replace function aether.grant_right(p_colony integer, p_role text, p_right text) returns void
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
    if not exists (
        select from pg_auth_members g where g.roleid = to_regrole('aether_' || p_right)
            and g.member = (select oid from pg_roles where rolname = p_role)
    ) then
        begin
            execute format('grant %I to %I', 'aether_' || p_right, p_role);
        exception when insufficient_privilege then
            raise exception 'the owner "%" of the tables may not give the role "aether_%" to others',
                current_user, p_right using errcode = 'AE004';
        end;
    end if;
end
$$;
