-- Files of a colony come and go: a blob that no line names any more is removed. Snapshots are made by admins.

create function aether.drop_blob(p_colony integer, p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform aether.require(p_colony, 'write');
    delete from aether.blobs b where b.colony = p_colony and b.name = p_name and not exists (
        select from aether.streams s where s.colony = p_colony and s.blob = p_name);
end
$$;

revoke all on function aether.drop_blob(integer, text) from public;
grant execute on function aether.drop_blob(integer, text) to aether_write;

-- As before, but for admins alone: a new replica believes a snapshot without the lines before it.
create or replace function aether.set_base(
    p_colony integer, p_stream text, p_revision bigint, p_blob text, p_wait integer
)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    s aether.streams;
begin
    perform aether.require(p_colony, 'admin');
    s := aether.lock_stream(p_colony, p_stream, p_wait);
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

revoke execute on function aether.set_base(integer, text, bigint, text, integer) from aether_write;
grant execute on function aether.set_base(integer, text, bigint, text, integer) to aether_admin;
