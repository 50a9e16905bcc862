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
