-- What a member keeps counts for a quota, and who kept it is known. A queued change is known by the key in its line.

alter table aether.colonies add column quota bigint not null default 1 << 30;  -- bytes of blobs of one member
alter table aether.blobs add column author text not null default '';

drop function if exists aether.head(integer, text), aether.heads(integer, text), aether.base(integer, text);
drop function if exists aether.append_lines(integer, text, bigint, text, bytea[], text, integer);
drop procedure if exists
    aether.append(integer, text, bigint, text, bytea[], text, integer, boolean, bigint, bytea[], bigint);
drop table if exists aether.keys;
