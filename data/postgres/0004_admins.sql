-- Who may make a colony: an admin of some colony of this database, and the owner of the schema. The role "aether_admin"
-- alone shows neither: it belongs to the whole server, and stays with a role whose right was revoked.

create or replace function aether.create_colony(p_name text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made integer;
begin
    if not pg_has_role(session_user, current_user, 'member') and not exists (
        select from aether.members m join pg_roles r on r.rolname = m.role
        where m."right" = 'admin' and pg_has_role(session_user, r.oid, 'member')
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
