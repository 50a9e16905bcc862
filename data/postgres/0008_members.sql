-- What a member keeps counts for a quota, and who kept it is known; functions whose results change are made again.

alter table aether.colonies add column quota bigint not null default 1 << 30;  -- bytes of blobs of one member
alter table aether.blobs add column author text not null default '';

drop function if exists aether.head(integer, text), aether.heads(integer, text), aether.base(integer, text);
