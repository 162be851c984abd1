CREATE SCHEMA partitions;

CREATE FUNCTION public.delete_audit_of_ended_company(ended_id bigint, rows integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE company_id = ended_id
        AND EXISTS (SELECT FROM company WHERE company.id = ended_id AND is_sandbox AND ended_at IS NOT NULL)
        ORDER BY id LIMIT rows
    );
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

CREATE TABLE public.account (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    administrator_id bigint,
    staff_id bigint,
    email text NOT NULL,
    handle uuid DEFAULT gen_random_uuid() NOT NULL,
    password text,
    password_stands_alone boolean DEFAULT false NOT NULL,
    password_changed_at timestamp with time zone,
    totp_sealed bytea,
    totp_since timestamp with time zone,
    totp_step bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_sign_in_at timestamp with time zone,
    CONSTRAINT account_email_lower_case CHECK ((email = lower(email))),
    CONSTRAINT account_of_one_person CHECK (((administrator_id IS NULL) <> (staff_id IS NULL))),
    CONSTRAINT account_totp CHECK (((totp_sealed IS NULL) = (totp_since IS NULL)))
);

ALTER TABLE public.account ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.account_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.administrator (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    active boolean DEFAULT true NOT NULL,
    CONSTRAINT administrator_email_lower_case CHECK ((email = lower(email)))
);

ALTER TABLE public.administrator ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.administrator_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.advance (
    company_id bigint NOT NULL,
    start_at timestamp with time zone NOT NULL,
    target_at timestamp with time zone NOT NULL,
    done jsonb DEFAULT '{}'::jsonb NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    lease_token uuid,
    leased_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    missing text,
    missing_since timestamp with time zone,
    CONSTRAINT advance_forward CHECK ((target_at >= start_at)),
    CONSTRAINT advance_missing CHECK (((missing IS NULL) = (missing_since IS NULL)))
);

CREATE TABLE public.api_key (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    administrator_id bigint,
    name text NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL,
    scope text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    revoked_at timestamp with time zone,
    expires_at timestamp with time zone,
    replaces bigint,
    CONSTRAINT api_key_digest_length CHECK ((octet_length(digest) = 32)),
    CONSTRAINT api_key_scope CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'webhook_only'::text])))
);

ALTER TABLE public.api_key ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit (
    id bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    company_id bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    subject_id bigint NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    request_id text NOT NULL
);

ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.ceremony (
    digest bytea NOT NULL,
    purpose text NOT NULL,
    account_id bigint,
    session_id bigint,
    data bytea NOT NULL,
    method text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT ceremony_purpose CHECK ((purpose = ANY (ARRAY['second_factor'::text, 'passkey_sign_in'::text, 'passkey_step_up'::text, 'passkey_new'::text, 'totp_new'::text, 'permit'::text])))
);

CREATE TABLE public.company (
    id bigint NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    name text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    timezone text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    second_factor_required boolean DEFAULT false NOT NULL,
    external_id text,
    is_sandbox boolean DEFAULT false NOT NULL,
    sandbox_of bigint,
    clock_offset interval DEFAULT '00:00:00'::interval NOT NULL,
    content text DEFAULT 'empty'::text NOT NULL,
    ended_at timestamp with time zone,
    filled_at timestamp with time zone,
    console_purged_at timestamp with time zone,
    purged_at timestamp with time zone,
    CONSTRAINT company_clock_offset CHECK (((clock_offset >= '00:00:00'::interval) AND (clock_offset <=
CASE
    WHEN is_sandbox THEN '3650 days'::interval
    ELSE '00:00:00'::interval
END))),
    CONSTRAINT company_content CHECK (((content = 'empty'::text) OR ((content = 'copy'::text) AND (sandbox_of IS NOT NULL)) OR ((content = 'demo'::text) AND is_sandbox))),
    CONSTRAINT company_ended CHECK (((ended_at IS NULL) OR (NOT active))),
    CONSTRAINT company_live CHECK ((is_sandbox OR ((sandbox_of IS NULL) AND (ended_at IS NULL)))),
    CONSTRAINT company_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT company_purged CHECK (((num_nonnulls(console_purged_at, purged_at) = 0) OR (ended_at IS NOT NULL)))
);

ALTER TABLE public.company ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.company_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.idempotency (
    company_id bigint NOT NULL,
    api_key_id bigint NOT NULL,
    idempotency_key text NOT NULL,
    fingerprint bytea NOT NULL,
    status integer NOT NULL,
    reply bytea NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.idempotency_note (
    digest bytea NOT NULL,
    service text NOT NULL,
    requests integer NOT NULL,
    leased_until timestamp with time zone NOT NULL
);

CREATE TABLE public.import_batch (
    id bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    company_id bigint NOT NULL,
    import_key text NOT NULL,
    kind text NOT NULL,
    ids bigint[] NOT NULL,
    versions bigint[] NOT NULL,
    before jsonb NOT NULL,
    beside jsonb NOT NULL,
    leaving bigint[],
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL
);

ALTER TABLE public.import_batch ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.import_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.key_last_use (
    api_key_id bigint NOT NULL,
    used_at timestamp with time zone NOT NULL,
    address text NOT NULL,
    used_for text NOT NULL
);

CREATE TABLE public.key_usage (
    api_key_id bigint NOT NULL,
    hour timestamp with time zone NOT NULL,
    company_id bigint NOT NULL,
    succeeded bigint DEFAULT 0 NOT NULL,
    refused bigint DEFAULT 0 NOT NULL,
    rate_limited bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.link (
    digest bytea NOT NULL,
    account_id bigint NOT NULL,
    purpose text NOT NULL,
    remove_second_factor boolean NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT link_purpose CHECK ((purpose = ANY (ARRAY['invitation'::text, 'reset'::text])))
);

CREATE TABLE public.outbox (
    event_id uuid NOT NULL,
    subject text NOT NULL,
    message bytea NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    claimed_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    published_at timestamp with time zone
);

CREATE TABLE public.outbox_confirmation (
    consumer text NOT NULL,
    recorded_until timestamp with time zone NOT NULL
);

CREATE TABLE public.passkey (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    credential_id bytea NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    synced boolean NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_used_at timestamp with time zone
);

ALTER TABLE public.passkey ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.passkey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.recovery_code (
    account_id bigint NOT NULL,
    digest bytea NOT NULL
);

CREATE TABLE public.request (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    api_key_id bigint NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    request_id text NOT NULL,
    method text NOT NULL,
    route text NOT NULL,
    status smallint NOT NULL,
    code text NOT NULL,
    details text NOT NULL,
    request_body text,
    response_body text
)
PARTITION BY RANGE (id);

CREATE TABLE public.request_end (
    is_only boolean NOT NULL,
    id bigint NOT NULL,
    CONSTRAINT request_end_is_only CHECK (is_only)
);

CREATE TABLE public.session (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    digest bytea NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    stepped_up_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    method text NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    CONSTRAINT session_method CHECK ((method = ANY (ARRAY['password'::text, 'password and code'::text, 'passkey'::text, 'link'::text, 'link and code'::text])))
);

ALTER TABLE public.session ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.session_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.sign_in_delay (
    email_digest bytea NOT NULL,
    failures integer NOT NULL,
    next_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL
);

CREATE TABLE public.sign_in_failure (
    id bigint NOT NULL,
    network text NOT NULL,
    failed_at timestamp with time zone NOT NULL
);

ALTER TABLE public.sign_in_failure ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sign_in_failure_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE public.staff_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.staff (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.staff_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    name text NOT NULL,
    email text,
    title text,
    external_id text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    source text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    CONSTRAINT staff_email_lower_case CHECK ((email = lower(email))),
    CONSTRAINT staff_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT staff_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text])))
);

CREATE TABLE public.usage_writer (
    id uuid NOT NULL,
    part bigint NOT NULL,
    written_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.withdrawn_record (
    company_id bigint NOT NULL,
    kind text NOT NULL,
    id bigint NOT NULL,
    version bigint NOT NULL,
    external_id text,
    record jsonb NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    withdrawn_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_email UNIQUE (email);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_handle UNIQUE (handle);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_of_administrator UNIQUE (administrator_id);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_of_staff UNIQUE (company_id, staff_id);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_email UNIQUE (email);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_of_company UNIQUE (company_id, id);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.advance
    ADD CONSTRAINT advance_pkey PRIMARY KEY (company_id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_digest UNIQUE (digest);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.ceremony
    ADD CONSTRAINT ceremony_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_external_id UNIQUE (external_id);

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_claim PRIMARY KEY (company_id, api_key_id, idempotency_key);

ALTER TABLE ONLY public.idempotency_note
    ADD CONSTRAINT idempotency_note_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.import_batch
    ADD CONSTRAINT import_batch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.key_last_use
    ADD CONSTRAINT key_last_use_pkey PRIMARY KEY (api_key_id);

ALTER TABLE ONLY public.key_usage
    ADD CONSTRAINT key_usage_pkey PRIMARY KEY (api_key_id, hour);

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_of_account UNIQUE (account_id);

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.outbox_confirmation
    ADD CONSTRAINT outbox_confirmation_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.passkey
    ADD CONSTRAINT passkey_credential UNIQUE (credential_id);

ALTER TABLE ONLY public.passkey
    ADD CONSTRAINT passkey_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.recovery_code
    ADD CONSTRAINT recovery_code_pkey PRIMARY KEY (account_id, digest);

ALTER TABLE ONLY public.request_end
    ADD CONSTRAINT request_end_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY public.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_digest UNIQUE (digest);

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sign_in_delay
    ADD CONSTRAINT sign_in_delay_pkey PRIMARY KEY (email_digest);

ALTER TABLE ONLY public.sign_in_failure
    ADD CONSTRAINT sign_in_failure_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.usage_writer
    ADD CONSTRAINT usage_writer_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.withdrawn_record
    ADD CONSTRAINT withdrawn_record_pkey PRIMARY KEY (company_id, kind, id);

CREATE INDEX advance_unfinished ON public.advance USING btree (begun_at) WHERE (finished_at IS NULL);

CREATE INDEX api_key_not_revoked ON public.api_key USING btree (company_id, id) WHERE (revoked_at IS NULL);

CREATE INDEX api_key_of_company ON public.api_key USING btree (company_id, id);

CREATE UNIQUE INDEX api_key_replaces ON public.api_key USING btree (replaces) WHERE (replaces IS NOT NULL);

CREATE INDEX audit_of_actor ON public.audit USING btree (company_id, actor, id);

CREATE INDEX audit_of_actor_and_kind ON public.audit USING btree (hashtextextended(subject, hashtextextended(actor, company_id)), id);

CREATE INDEX audit_of_company ON public.audit USING btree (company_id, id);

CREATE INDEX audit_of_kind ON public.audit USING btree (company_id, subject, id);

CREATE INDEX audit_of_request ON public.audit USING btree (company_id, request_id, id);

CREATE INDEX audit_of_subject ON public.audit USING btree (company_id, subject, subject_id, id);

CREATE INDEX audit_recorded ON public.audit USING btree (company_id, recorded_at, id);

CREATE INDEX ceremony_expires ON public.ceremony USING btree (expires_at);

CREATE INDEX ceremony_of_account ON public.ceremony USING btree (account_id);

CREATE INDEX ceremony_of_session ON public.ceremony USING btree (session_id);

CREATE INDEX company_ended_sandboxes ON public.company USING btree (id) WHERE (ended_at IS NOT NULL);

CREATE INDEX company_sandboxes ON public.company USING btree (sandbox_of, id) WHERE (sandbox_of IS NOT NULL);

CREATE INDEX company_to_fill ON public.company USING btree (id) WHERE ((content <> 'empty'::text) AND (filled_at IS NULL));

CREATE INDEX idempotency_note_leased_until ON public.idempotency_note USING btree (leased_until);

CREATE INDEX import_batch_leaving ON public.import_batch USING btree (company_id) WHERE (leaving IS NOT NULL);

CREATE INDEX import_batch_of ON public.import_batch USING btree (company_id, import_key, kind, id);

CREATE INDEX import_batch_recorded ON public.import_batch USING btree (recorded_at);

CREATE INDEX ix_idempotency_recorded_at ON public.idempotency USING btree (recorded_at);

CREATE INDEX key_usage_hour ON public.key_usage USING btree (hour);

CREATE INDEX key_usage_of_company ON public.key_usage USING btree (company_id, hour);

CREATE INDEX outbox_recorded ON public.outbox USING btree (recorded_at);

CREATE INDEX outbox_unpublished ON public.outbox USING btree (event_id) WHERE (published_at IS NULL);

CREATE INDEX passkey_of_account ON public.passkey USING btree (account_id, id);

CREATE INDEX request_of_key ON ONLY public.request USING btree (company_id, api_key_id, id);

CREATE INDEX request_refused ON ONLY public.request USING btree (company_id, id) WHERE (status >= 400);

CREATE INDEX request_request_id ON ONLY public.request USING btree (request_id);

CREATE INDEX request_written ON ONLY public.request USING btree (company_id, id) WHERE ((method <> ALL (ARRAY['GET'::text, 'HEAD'::text])) AND (status < 400));

CREATE INDEX session_ends ON public.session USING btree (ends_at);

CREATE INDEX session_of_account ON public.session USING btree (account_id, id);

CREATE INDEX sign_in_delay_last ON public.sign_in_delay USING btree (last_at);

CREATE INDEX sign_in_failure_at ON public.sign_in_failure USING btree (failed_at);

CREATE INDEX sign_in_failure_of_network ON public.sign_in_failure USING btree (network, failed_at);

CREATE INDEX withdrawn_record_changed ON public.withdrawn_record USING btree (company_id, kind, changed_xid, id);

CREATE INDEX withdrawn_record_external_id ON public.withdrawn_record USING btree (company_id, kind, external_id);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_administrator_of_the_same_company FOREIGN KEY (company_id, administrator_id) REFERENCES public.administrator(company_id, id);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_staff_of_the_same_company FOREIGN KEY (company_id, staff_id) REFERENCES public.staff(company_id, id);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);

ALTER TABLE ONLY public.advance
    ADD CONSTRAINT advance_company FOREIGN KEY (company_id) REFERENCES public.company(id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_administrator FOREIGN KEY (administrator_id) REFERENCES public.administrator(id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_replaces_a_key FOREIGN KEY (replaces) REFERENCES public.api_key(id);

ALTER TABLE ONLY public.ceremony
    ADD CONSTRAINT ceremony_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.ceremony
    ADD CONSTRAINT ceremony_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.session(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_sandbox_of FOREIGN KEY (sandbox_of) REFERENCES public.company(id);

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.passkey
    ADD CONSTRAINT passkey_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.recovery_code
    ADD CONSTRAINT recovery_code_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);
