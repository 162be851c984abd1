CREATE TABLE public.administrator (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
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

CREATE TABLE public.company (
    id bigint NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    name text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    timezone text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT company_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200)))
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
    CONSTRAINT staff_email_lower_case CHECK ((email = lower(email))),
    CONSTRAINT staff_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT staff_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text])))
);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_email UNIQUE (email);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_of_company UNIQUE (company_id, id);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_digest UNIQUE (digest);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_claim PRIMARY KEY (company_id, api_key_id, idempotency_key);

ALTER TABLE ONLY public.outbox_confirmation
    ADD CONSTRAINT outbox_confirmation_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (company_id, id);

CREATE INDEX api_key_of_company ON public.api_key USING btree (company_id, id);

CREATE INDEX audit_of_company ON public.audit USING btree (company_id, id);

CREATE INDEX audit_of_kind ON public.audit USING btree (company_id, subject, id);

CREATE INDEX audit_of_subject ON public.audit USING btree (company_id, subject, subject_id, id);

CREATE INDEX ix_idempotency_recorded_at ON public.idempotency USING btree (recorded_at);

CREATE INDEX outbox_recorded ON public.outbox USING btree (recorded_at);

CREATE INDEX outbox_unpublished ON public.outbox USING btree (event_id) WHERE (published_at IS NULL);

ALTER TABLE ONLY public.administrator
    ADD CONSTRAINT administrator_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_administrator_of_the_same_company FOREIGN KEY (company_id, administrator_id) REFERENCES public.administrator(company_id, id);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.company(id);
