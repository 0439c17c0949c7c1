// Made by docs/api_types.py from schema/openapi.json; edit the schemas and run `make docs`.

declare namespace Api {
  interface About {
    age_s: number | null;
    command: string; // renews it, on the host
    old: boolean; // there is none, or it is older than 26 hours
    written_at: string | null; // null: there is none yet, and the items are empty
  }

  interface Accepted {
    operation: Operation;
  }

  interface AccountPage {
    items: AccountUsage[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface AccountUsage {
    created_at: string;
    disabled: boolean;
    display_name: string;
    gpus: number; // leased
    has_password: boolean;
    image_bytes: number; // of its images together, when the store was last read
    last_action_at: string | null; // its newest row of the audit
    last_login_at: string | null; // with the password, in 90 days
    name: string;
    note: string;
    password_closed: boolean;
    quota: string | null; // its policy; null means the default one
    retired: boolean; // its Linux account was removed: nobody can use it any more
    running: number; // starting, running or stopping
    sessions: number;
    status: string;
    superuser: boolean;
    templates: number; // private ones
    tokens: number; // active ones
    uid: number | null;
    updated_at: string;
    workspaces: number;
  }

  interface Allowlist {
    items: Registry[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface Alternative {
    allocatable_now: boolean;
    gpu_use_case: 'none' | 'light' | 'standard' | 'heavy' | 'max';
    resources: Resources;
  }

  interface Amounts {
    cpu: number; // cores of running workspaces
    gpus: number;
    image_bytes: number; // together, when the store was last read; shared layers count once
    memory_bytes: number; // of running workspaces
    running: number; // running, starting or stopping workspaces
    workspaces: number;
  }

  interface AppLink {
    expires_at: string;
    link: string; // to open in a browser; its secret is in its fragment
    url: string; // where it leads
  }

  interface AppOpen {
    path?: string; // with its query
  }

  interface Attention {
    gpus_lost: number; // running workspaces that lost a GPU: own ones, for administrators all
    operations_failed: number; // own ones that failed in the last 24 hours
    reviews_waiting: number; // administrators: global templates that await a review; else 0
    tokens_expiring: number; // own tokens that expire within seven days
  }

  interface AuditChain {
    archived: ChainRow; // the last row that was moved to an archive
    found: string;
    head: ChainRow; // the newest row now
    level: 'ok' | 'warn' | 'fail' | null; // of the doctor's finding; null: not verified yet
    remedy: string;
    report: About;
  }

  interface AuditPage {
    items: AuditRow[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface AuditRow {
    action: string; // noun.verb
    address: string; // where a call over HTTPS came from
    at: string;
    detail: Record<string, any>;
    hash: string; // SHA-256 over the hash of the row before and this row
    id: number;
    outcome: string; // begun (the row of its end has the same request_id), ok, an error's code, or interrupted: its process ended before the outcome was recorded
    request_id: string;
    target: string;
    target_name: string; // the target's name of then; empty where it has none, and in older rows
    target_owner: string | null; // whose it was, where somebody else acted on it
    user: string; // the account that did it; (unknown) for a login without one
    via: string; // socket, session, token, worker or admin
  }

  interface BackupPage {
    items: BackupSnapshot[];
    limit: number;
    next_offset: number | null;
    offset: number;
    report: About;
    total: number;
  }

  interface BackupSnapshot {
    commit: string;
    created_at: string;
    host_files: boolean; // the archive of the host's small files is beside it
    name: string;
    refused: string | null; // why the program that wrote it could not restore it
    schema: number | null;
    size_bytes: number;
  }

  interface Block {
    action: ErrorAction | null;
    code: string; // of the error with which its create or start would fail
    hint: string; // the command after which it is no longer in the way
    message: string;
  }

  interface Build {
    created_at: string;
    error: ErrorInner | null;
    finished_at: string | null;
    id: string;
    kind: string;
    phase: string;
    progress: Progress;
    result: Record<string, any> | null;
    status: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
    subject: Subject;
    template: TemplateOfOperation | null;
    updated_at: string;
  }

  interface BuildArgument {
    name: string;
    value: string;
  }

  interface BuildPage {
    items: Build[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface BuildRequest {
    build_args?: BuildArgument[];
    secrets?: BuildSecret[];
  }

  interface BuildSecret {
    id: string;
    value: string; // base64
  }

  interface Capacity {
    gpus: GpuCapacity[];
    host: HostCapacity;
    quota: Quota;
    remaining: Remaining;
    used: Amounts;
  }

  interface CdiState {
    problem: string | null;
    ready: boolean;
    remedy: string | null;
  }

  interface ChainRow {
    hash: string;
    id: number;
  }

  interface CheckedImage {
    action: ErrorAction | null;
    blocked_by: string | null; // the code of its failure: storage_full or quota_exceeded
    download_bytes: number;
    fits: boolean;
    free_bytes: number; // on the disk of the images
    hint: string | null; // the command that makes room
    images: string[]; // from registries: itself, or the missing bases of a build
    message: string | null; // why it does not fit
    needed_bytes: number; // the least that must be free on the disk
    present_bytes: number; // of the same images, in the store already
    quota_bytes: number | null; // for them; null is unlimited
    ref: string;
    used_bytes: number; // by all images in the store
    verb: 'pull' | 'build';
  }

  interface CheckedWorkspace {
    after: Amounts; // what is used once it runs
    allocatable_now: boolean;
    blocked_by: Block[];
    gpus: GpuOfDryRun[];
    image_status: string; // without its image it is created, but not started
    quota: Quota;
    remaining: Remaining; // of the quota then
    resources: Resources;
    template: TemplateOfRecommendation;
    used: Amounts;
  }

  interface ContextFile {
    executable: boolean;
    path: string;
    sha256: string;
    size: number;
  }

  interface ContextFilePage {
    items: ContextFile[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface Credentials {
    password: string;
    username: string;
  }

  interface Defaults {
    cpu_limit?: number | null; // cores
    env?: Variable[];
    gpu_count?: number;
    gpu_mode?: 'exclusive' | 'shared';
    memory_bytes?: number | null;
    pids_limit?: number | null;
    shm_bytes?: number | null; // size of /dev/shm
  }

  interface Difference {
    after: number;
    before: number;
    changed: string[]; // the names of what differs
    context: string | null; // a unified diff of the files' digests
    dockerfile: string | null; // a unified diff
    fields: FieldChange[];
  }

  interface DirectoryMake {
    parents?: boolean;
  }

  interface DiskSums {
    cache_bytes: number;
    containers_bytes: number;
    files_bytes: number;
    images_bytes: number;
    mapped_bytes: number;
    total_bytes: number;
    volumes_bytes: number;
  }

  interface DiskUsage {
    cache_bytes: number | null; // layers that only builds need
    complete: boolean | null; // false: too many files, or some are closed; it is more
    containers_bytes: number | null; // written in workspaces, outside /work
    error: string | null; // why the last one failed
    files: number | null; // names in the file roots
    files_bytes: number | null; // the user's own file roots
    images_bytes: number | null; // layers of images with a name, shared ones once
    mapped_bytes: number | null; // copies of images for other ids (run_as)
    measured_at: string | null;
    name: string;
    quota_image_bytes: number | null; // null means unlimited
    total_bytes: number | null; // null: not measured yet
    volumes_bytes: number | null; // null: not measured yet
    waiting: boolean; // a measurement was asked for
  }

  interface DiskUsagePage {
    items: DiskUsage[];
    limit: number;
    next_offset: number | null;
    offset: number;
    oldest_measured_at: string | null;
    sums: DiskSums; // of all users that match
    total: number;
    waiting: number; // users that are still to be measured
  }

  interface Dockerfile {
    dockerfile: string;
    read_only: boolean;
  }

  interface DockerfileText {
    dockerfile: string;
  }

  interface EndedSessions {
    ended: number;
  }

  interface Entry {
    mode: string; // permission bits, octal
    modified_at: string | null;
    name: string; // bytes that are not UTF-8 are shown as \xNN
    owner: string | null; // a Linux user, `container:ID` for a user inside containers, or a bare id
    path: string; // percent-encoded, below the file root
    size: number;
    target: string | null;
    type: 'file' | 'directory' | 'symlink' | 'other';
    utf8: boolean; // whether `name` is exact
  }

  interface EntryList {
    entry: Entry;
    items: Entry[];
    limit: number;
    next_offset: number | null;
    offset: number;
    path: string; // percent-encoded, below the file root
    total: number;
  }

  interface ErrorAction {
    body: Record<string, any> | null; // null: none is sent
    label: string;
    method: string;
    path: string;
  }

  interface ErrorBody {
    error: ErrorInner;
  }

  interface ErrorField {
    code: string;
    field: string;
    message: string;
  }

  interface ErrorInner {
    action: ErrorAction | null; // the hint as a request, where a button can do it
    code: string;
    details: Record<string, any>; // by code; `engine`: what Podman, crun or a registry client printed, escaped, for the owner; `output` and `exit_code`: of a program that has exited at once
    fields: ErrorField[];
    hint: string; // the next command to type
    message: string;
    request_id: string;
    retryable: boolean;
  }

  interface Event {
    actor: EventActor;
    data: Record<string, any> | null; // by type, see docs/api.md; null for other users'
    id: number;
    owner: string | null; // whose thing it is
    reason: string | null; // such as the status_reason of a workspace
    subject: EventSubject;
    ts: string;
    type: string; // noun.verb
  }

  interface EventActor {
    user: string | null;
    via: string | null; // socket, session, token, worker or admin
  }

  interface EventPage {
    items: Event[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface EventSubject {
    id: string;
    name: string; // of that moment
    type: string; // workspace, operation, image, launcher, template, token, host, registries
  }

  interface ExecResult {
    duration_ms: number;
    exit_code: number | null;
    stderr: string; // base64
    stdout: string; // base64
    timed_out: boolean;
    truncated: boolean;
  }

  interface FieldChange {
    after: any;
    before: any;
    field: string;
  }

  interface FileContent {
    content: string; // base64
    offset: number;
    path: string; // percent-encoded, below the file root
    size: number; // of the whole file
    truncated: boolean; // whether the file continues after it
  }

  interface FileLimits {
    archive_max_bytes: number;
    archive_max_members: number;
    read_max_bytes: number;
    upload_max_bytes: number;
  }

  interface FileMove {
    force?: boolean;
    to: string; // percent-encoded, below the file root
  }

  interface Finding {
    code: string;
    diff: string | null; // the change, in the record of one template; not in lists
    file: string | null; // the file that it is in: Dockerfile
    line: number | null; // of that file, from 1
    message: string;
  }

  interface Gpu {
    allow_shared?: boolean; // whether workspaces may share their GPUs
    min_compute_capability?: string | null;
    min_cuda?: string | null; // that the driver of the host must support
    min_vram_bytes?: number | null; // of each GPU
  }

  interface GpuCapacity {
    holders: GpuHolder[];
    index: number | null; // as in servers/hardware; null if lost
    mode: string | null; // exclusive or shared, of its leases
    model: string | null;
    processes: OutsideProcess[]; // outside svc; at most 100
    state: 'free' | 'leased' | 'shared' | 'busy' | 'lost' | 'unusable';
    use_percent: number | null; // of the last second; null for MIG instances
    used_bytes: number | null; // of its memory, by all programs
    uuid: string;
    vram_bytes: number | null;
  }

  interface GpuHolder {
    mine: boolean;
    outside: boolean;
    owner: string;
    since: string | null; // of the lease
    workspace: string | null; // its name; others' only for administrators
    workspace_id: string | null; // as `workspace`
  }

  interface GpuOfDryRun {
    index: number | null;
    model: string | null;
    uuid: string;
  }

  interface GpuOfWorkspace {
    mode: 'exclusive' | 'shared';
    uuid: string;
  }

  interface GpuProcess {
    pid: number; // its pid on the host
    used_bytes: number | null;
  }

  interface GpuSample {
    model: string | null;
    processes: GpuProcess[];
    used_bytes: number; // by this workspace
    utilization_percent: number | null; // by all its processes
    uuid: string;
    vram_bytes: number | null;
  }

  interface Health {
    db: string; // ok, or an error's code
    error: ErrorInner; // what is wrong; missing when all is well
    helper: string; // ok, or an error's code
    license: string; // ok, license_ending (within 14 days), license_lapsed, or an error's code
    status: 'ok' | 'degraded';
  }

  interface HostCapacity {
    cpus: number;
    gpus: number;
    gpus_free: number;
    memory_bytes: number;
  }

  interface HostFinding {
    code: string; // docs/doctor.md has a line for each
    found: string;
    level: 'ok' | 'warn' | 'fail';
    remedy: string; // the next command; empty for the level ok
  }

  interface HostFindingPage {
    items: HostFinding[];
    limit: number;
    next_offset: number | null;
    offset: number;
    report: About;
    total: number;
  }

  interface HostGpu {
    cdi: string | null; // its CDI name for containers
    compute_capability: string | null;
    index: number;
    mig: boolean; // divided into instances, or one of them
    model: string;
    uuid: string;
    vram_bytes: number | null;
  }

  interface HostHardware {
    cdi: CdiState;
    driver: string | null;
    gpus: HostGpu[];
    max_cuda: string | null;
    provider: string; // nvml, file or none
  }

  interface Idle {
    action?: 'none' | 'notify' | 'stop';
    after_minutes?: number | null; // without GPU, CPU, terminal, exec or port traffic
  }

  interface IdleOfWorkspace {
    action: 'none' | 'notify' | 'stop';
    after_minutes: number | null;
    keep_until: string | null; // the policy does not apply until then
    since: string | null; // since when the workspace is idle
  }

  interface Image {
    digest: string | null;
    error: string | null;
    operation: ImageOperation | null;
    ref: string;
    size_bytes: number | null;
    status: 'missing' | 'pulling' | 'building' | 'ready' | 'failed';
    template: TemplateOfImage | null;
    updated_at: string | null;
    used_by: string[]; // names of workspaces
    warnings: RecordWarning[];
  }

  interface ImageOfWorkspace {
    digest: string | null;
    ref: string;
  }

  interface ImageOperation {
    id: string;
    kind: string;
    phase: string;
    progress: Progress;
    status: string;
  }

  interface ImagePage {
    items: Image[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface LastError {
    at: string;
    code: string;
    message: string;
  }

  interface Launcher {
    autostart?: boolean; // at every start of the workspace
    command: string[];
    env?: Variable[];
    name: string;
    port?: string | null; // the name of the port that it serves
    title?: string;
    token?: LauncherToken;
  }

  interface LauncherChange {
  }

  interface LauncherFailed {
    exit_code: number | null;
    name: string;
    output: string[]; // its last lines
  }

  interface LauncherList {
    items: LauncherState[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface LauncherNotListening {
    container_port: number;
    name: string;
  }

  interface LauncherState {
    autostart: boolean;
    connect: string | null; // what a person on this host opens or runs: a URL, HOST:PORT, an `ssh` or `psql` command
    exit_code: number | null;
    finished_at: string | null;
    host_port: number | null;
    kind: 'http' | 'https' | 'tcp' | 'ssh' | 'postgres' | null;
    link: string | null; // the URL to open, token included
    name: string;
    port: string | null; // the name of the port that it serves
    ssh: string | null; // the command on another computer after which `connect` works there too
    started_at: string | null;
    state: 'stopped' | 'started' | 'exited';
    title: string;
    token: string | null; // for logging in, where the template says how to find it; never stored
    url: string | null; // its address on this host; null for `tcp` and `ssh`
  }

  interface LauncherToken {
    file?: string; // absolute, in the container; without a pattern: its first line
    link?: string; // the path with {token} behind the URL of its port, to open
    pattern?: string; // literal text around {token}, on one line of the output or of the file
  }

  interface License {
    days_left: number; // a begun day counts; 0 when lapsed
    ends_at: string;
    holder: string | null;
    id: string | null; // of a signed one
    keys: string[]; // the vendor's keys of this build
    kind: 'trial' | 'signed';
    limits: LicenseLimits;
    notices: Notice[];
    problem: string | null; // why the installed file is not in force
    request_code: string | null; // of this host, for the vendor
    starts_at: string;
    state: 'active' | 'ending' | 'lapsed'; // ending: within 14 days; lapsed: nothing can be created or started
    used: LicenseUse;
  }

  interface LicenseLimits {
    gpus: number | null; // null is unlimited
    users: number | null; // null is unlimited
  }

  interface LicenseUse {
    gpus: number; // leased GPUs
    users: number; // accounts that could start something
  }

  interface Limits {
    cpu_limit?: number | null; // cores
    gpu_count?: number;
    memory_bytes?: number | null;
    pids_limit?: number | null;
    shm_bytes?: number | null; // size of /dev/shm
  }

  interface LinuxAccount {
    home: string;
    name: string;
    uid: number;
  }

  interface LiveLauncher {
    exit_code: number | null; // of its last run
    name: string;
    state: 'stopped' | 'started' | 'exited';
  }

  interface LiveUse {
    at: string;
    cpu_percent: number | null; // of one core, since the measurement before
    gpu_memory_bytes: number | null;
    gpu_percent: number | null; // of the busiest of its GPUs
    id: string;
    launchers: LiveLauncher[];
    memory_bytes: number | null;
  }

  interface LiveUseList {
    items: LiveUse[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface LogLine {
    at: string;
    line: number; // its number, from 1
    text: string;
  }

  interface LogMarker {
    offset: number; // bytes of the output before it
    text: string;
  }

  interface LogText {
    markers: LogMarker[];
    older_gone: boolean; // whether older output was asked for and is no longer kept
    text: string;
    truncated: boolean; // whether more was asked for and is kept: see `logs/raw`
  }

  interface LoginAnswer {
    session: SessionRecord;
    session_secret: string; // shown this once; send it as X-Svc-Session with every request
    user: SessionUser;
  }

  interface Me {
    display_name: string;
    linux_account: LinuxAccount;
    name: string;
    notices: Notice[]; // administrators: what should be done about the licence
    roots: string[]; // ids of the file roots
    superuser: boolean;
    uid: number;
    via: string; // socket, session or token
  }

  interface MeasureReply {
    waiting: number;
  }

  interface MeasureRequest {
    users?: string[]; // names; none is everybody who is active
  }

  interface Mount {
    path: string; // in the container
    read_only?: boolean;
    root: string; // one of the host's file roots
  }

  interface MountOfWorkspace {
    path: string;
    read_only: boolean;
    root: string;
  }

  interface NewTerminal {
    active_at: string;
    cols: number;
    command: string[] | null; // null: the shell
    exit_code: number | null;
    id: string;
    opened_at: string;
    rows: number;
    state: 'running' | 'exited';
    ticket: string | null; // for GET terminal?id=...: once, within 30 seconds; null on the host socket
    title: string; // as its program has set it
    viewers: number;
  }

  interface NewTicket {
    expires_at: string;
    url: string; // the URL with the ticket, which is nowhere else
  }

  interface NewToken {
    created_at: string;
    expires_at: string;
    expires_soon: boolean; // within seven days
    id: string;
    last_used_at: string | null; // to the minute
    last_used_from: string | null; // the address of that use
    name: string;
    prefix: string; // the secret's first characters
    scopes: string[]; // what it may do besides; `app:WORKSPACE/PORT` alone: all that it opens
    secret: string; // only in this response, and stored nowhere
    status: 'active' | 'expired';
  }

  interface Nothing {
  }

  interface Notice {
    code: string;
    hint: string; // the next command
    message: string;
  }

  interface Operation {
    created_at: string;
    error: ErrorInner | null;
    finished_at: string | null;
    id: string;
    kind: string;
    phase: string;
    progress: Progress;
    result: Record<string, any> | null;
    status: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
    subject: Subject;
    template: TemplateOfOperation | null;
    updated_at: string;
  }

  interface OperationLog {
    ended: boolean; // whether no further line comes
    lines: LogLine[];
    next: number; // the `after` of the next request
  }

  interface OperationOfWorkspace {
    id: string;
    kind: string;
    phase: string;
    progress: Progress;
    status: string;
  }

  interface OperationPage {
    items: Operation[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface OutsideProcess {
    owner: string;
    pid: number;
    used_bytes: number | null;
  }

  interface Overview {
    free_bytes: number; // on the disk of the store
    items: StoredImage[];
    limit: number;
    next_offset: number | null;
    offset: number;
    quota_bytes: number | null; // null is unlimited
    reclaimable_bytes: number;
    total: number;
    total_bytes: number;
    unused_volumes: number; // of an image's VOLUME, of containers that are gone; a prune removes them
  }

  interface OwnAuditPage {
    items: OwnAuditRow[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface OwnAuditRow {
    action: string; // noun.verb
    address: string; // where a call over HTTPS came from
    at: string;
    detail: Record<string, any>;
    id: number;
    outcome: string; // begun (the row of its end has the same request_id), ok, an error's code, or interrupted: its process ended before the outcome was recorded
    request_id: string;
    target: string;
    target_name: string; // the target's name of then; empty where it has none, and in older rows
    target_owner: string | null; // whose it was, where somebody else acted on it
    user: string; // the account that did it; (unknown) for a login without one
    via: string; // socket, session, token, worker or admin
  }

  interface OwnSession {
    address: string; // where the login came from
    browser: string; // name and system by a fixed list; empty for sessions of older releases
    created_at: string;
    current: boolean; // the one that sends this request
    ends_at: string; // when it ends in any case
    id: string;
    idle_ends_at: string; // when it ends unless it is used
    last_used_at: string; // to the minute
  }

  interface PasswordChange {
    current_password: string;
    password: string;
  }

  interface Port {
    access?: 'owner' | 'host'; // who may connect: the owner alone, or every user of the host
    container_port?: number | null; // null or missing: the same number as on the host
    kind?: 'http' | 'https' | 'tcp' | 'ssh' | 'postgres'; // what listens behind it, and so how a person comes to it
    name: string;
    user?: string | null; // of `ssh` (root) and `postgres` (postgres): the login inside
  }

  interface PortAdd {
    access?: 'owner' | 'host'; // who may connect: the owner alone, or every user of the host
    container_port?: number | null; // null or missing: the same number as on the host
    kind?: 'http' | 'https' | 'tcp' | 'ssh' | 'postgres'; // what listens behind it, and so how a person comes to it
    name: string;
    user?: string | null; // of `ssh` (root) and `postgres` (postgres): the login inside
  }

  interface PortList {
    items: PortState[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface PortState {
    access: 'owner' | 'host';
    app_local_url: string | null; // its own address for a browser on this host; null where there is none
    connect: string; // what a person on this host opens or runs: a URL, HOST:PORT, an `ssh` or `psql` command
    connections: number; // open now
    container_port: number;
    host_port: number; // on 127.0.0.1
    kind: 'http' | 'https' | 'tcp' | 'ssh' | 'postgres';
    label: string | null; // its name in addresses of apps; null where no browser opens it
    listens: boolean | null; // whether a program listens on `container_port` inside; null: not known
    name: string;
    refused: number; // connections refused since the port was opened, by its `access`
    ssh: string; // the command on another computer after which `connect` works there too
    state: 'open' | 'closed';
    url: string | null; // its address on this host; null for `tcp` and `ssh`
    user: string | null;
  }

  interface ProcessSample {
    command: string;
    cpu_percent: number; // of one core
    memory_bytes: number;
    parent: number;
    pid: number; // its pid on the host
  }

  interface Progress {
    current: number;
    rate: number; // bytes in a second, smoothed over some seconds
    seconds_left: number | null; // at that rate; null while it cannot be told
    text: string;
    total: number;
    unit: string; // bytes or steps
  }

  interface Pruned {
    freed_bytes: number; // of the images
    removed: RemovedImage[];
    removed_volumes: number;
  }

  interface Quota {
    max_cpu: number | null; // cores; null means unlimited
    max_gpus: number | null; // null means unlimited
    max_image_bytes: number | null; // null means unlimited
    max_memory_bytes: number | null; // null means unlimited
    max_running: number | null; // null means unlimited
    max_workspaces: number | null; // null means unlimited
    name: string;
  }

  interface QuotaPage {
    items: QuotaPolicy[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface QuotaPolicy {
    max_cpu: number | null; // cores; null means unlimited
    max_gpus: number | null; // null means unlimited
    max_image_bytes: number | null; // null means unlimited
    max_memory_bytes: number | null; // null means unlimited
    max_running: number | null; // null means unlimited
    max_workspaces: number | null; // null means unlimited
    name: string;
    users: number; // how many accounts have it
  }

  interface QuotaPut {
    max_cpu?: number | null; // cores
    max_gpus?: number | null;
    max_image_bytes?: number | null;
    max_memory_bytes?: number | null;
    max_running?: number | null;
    max_workspaces?: number | null;
  }

  interface RecommendRequest {
    gpu_use_case?: 'none' | 'light' | 'standard' | 'heavy' | 'max';
    template: string; // the template's id or name
  }

  interface Recommendation {
    action: ErrorAction | null;
    allocatable_now: boolean;
    alternatives: Alternative[];
    blocked_by: 'no_gpu' | 'template' | 'quota' | 'gpu_busy' | null;
    command: string; // the commands that set it up and start it
    gpu_use_case: 'none' | 'light' | 'standard' | 'heavy' | 'max';
    hint: string | null; // the next command
    message: string | null; // why it is not possible now
    resources: Resources;
    template: TemplateOfRecommendation;
  }

  interface RecordWarning {
    code: string; // image_user: an image whose programs do not run as root; wrong_architecture: an image for another platform
    hint: string; // the next command
    message: string;
  }

  interface RecoverySet {
    applicable: boolean;
    commit: string;
    created_at: string;
    id: string;
    kind: string;
    next_version: string;
    problem: string; // why it cannot be applied
    remedy: string; // the command that can be run instead
    schema: number | null;
    size_bytes: number;
    version: string;
    why: string;
  }

  interface RecoverySetPage {
    items: RecoverySet[];
    limit: number;
    next_offset: number | null;
    offset: number;
    report: About;
    total: number;
  }

  interface Registries {
    registries: Registry[];
  }

  interface Registry {
    host: string;
    insecure?: boolean; // plain HTTP or an untrusted certificate
    path_prefix?: string;
  }

  interface Remaining {
    cpu: number | null; // null means unlimited
    gpus: number | null; // null means unlimited
    image_bytes: number | null; // null means unlimited
    memory_bytes: number | null; // null means unlimited
    running: number | null; // null means unlimited
    workspaces: number | null; // null means unlimited
  }

  interface Removed {
    removed: number;
  }

  interface RemovedImage {
    image_id: string;
    names: string[];
    size_bytes: number; // including shared layers
  }

  interface Resources {
    cpu_limit: number | null; // cores
    gpu_count: number;
    gpu_mode: 'exclusive' | 'shared';
    memory_bytes: number | null;
    pids_limit: number | null;
    shm_bytes: number | null; // size of /dev/shm
  }

  interface ResourcesRequest {
    cpu_limit?: number | null; // cores; also "unlimited"
    gpu_count?: number | null;
    gpu_mode?: 'exclusive' | 'shared' | null;
    memory_bytes?: number | null; // also "unlimited"
    pids_limit?: number | null; // also "unlimited"
    shm_bytes?: number | null; // size of /dev/shm; also "unlimited"
  }

  interface Revision {
    created_at: string;
    image_ref: string;
    is_current: boolean; // the present one
    is_reviewed: boolean; // the last that was enabled
    revision: number;
    source_type: 'registry' | 'dockerfile';
    workspaces: number; // workspaces that use it
  }

  interface RevisionContent {
    command: string[] | null;
    created_at: string;
    defaults: Defaults;
    description: string;
    dockerfile: string | null;
    env: VariableRecord[];
    gpu: Gpu;
    idle: Idle;
    image_ref: string;
    is_current: boolean; // the present one
    is_reviewed: boolean; // the last that was enabled
    launchers: Launcher[];
    limits: Limits;
    mounts: Mount[];
    network: string | null;
    ports: Port[];
    revision: number;
    run_as: RunAs | null;
    source: Source;
    source_type: 'registry' | 'dockerfile';
    workspaces: number; // workspaces that use it
  }

  interface RevisionPage {
    items: Revision[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface Root {
    exists: boolean;
    free_bytes: number | null;
    id: string;
    mounted_at: string | null; // in every workspace
    path: string; // on the host
    read_only: boolean;
    size_bytes: number | null; // of the file system it is on
  }

  interface RootList {
    items: Root[];
    limit: number;
    limits: FileLimits;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface RunAs {
    gid: number;
    uid: number;
  }

  interface SessionAnswer {
    attention: Attention;
    events_after: number; // Last-Event-ID with which a page that reads its lists now misses no event
    session: SessionRecord;
    user: SessionUser;
  }

  interface SessionPage {
    items: OwnSession[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface SessionRecord {
    address: string; // where the login came from
    browser: string; // name and system by a fixed list; empty for sessions of older releases
    created_at: string;
    ends_at: string; // when it ends in any case
    id: string;
    idle_ends_at: string; // when it ends unless it is used
    last_used_at: string; // to the minute
  }

  interface SessionUser {
    display_name: string;
    name: string;
    superuser: boolean;
  }

  interface Snapshot {
    at: string;
    cpu_limit: number | null; // cores
    cpu_percent: number; // of one core
    gpus: GpuSample[];
    memory_bytes: number;
    memory_limit_bytes: number | null;
    more_processes: number;
    pids: number;
    pids_limit: number | null;
    processes: ProcessSample[];
    sampled_ms: number; // CPU use is that of so many milliseconds before
    source: 'cgroup' | 'proc'; // cgroup: the kernel's own count; proc: the sum over the processes
  }

  interface Source {
    context_bytes: number;
    context_files: number; // files of the build context
    has_dockerfile: boolean;
    image_ref: string;
    local_only: boolean;
    type: 'registry' | 'dockerfile';
  }

  interface SourceChange {
    dockerfile?: string; // of a private Dockerfile template
    image_ref?: string; // of a registry template
    local_only?: boolean; // of a global Dockerfile template: each user builds the image
    type?: 'registry' | 'dockerfile';
  }

  interface SourceCreate {
    dockerfile?: string; // of a private Dockerfile template
    image_ref?: string; // of a registry template
    local_only?: boolean; // of a global Dockerfile template: each user builds the image
    type?: 'registry' | 'dockerfile';
  }

  interface StoredImage {
    containers: number; // created from it, also without svc
    created_at: string | null;
    image_id: string;
    left_by_build: boolean; // whether it is what a build left that failed or was cancelled
    names: string[];
    newer_for: string[]; // names of workspaces that an upgrade would move to it
    reclaimable_bytes: number; // the least that a prune frees
    shared_bytes: number; // in other images too
    size_bytes: number; // including shared layers
    templates: TemplateOfImage[];
    unique_bytes: number; // in no other image
    unused: boolean; // whether a prune would remove it
    used_by: string[]; // names of workspaces, by what their containers were made from
  }

  interface Subject {
    id: string;
    name: string; // of the workspace that a set-up creates, else as id
    type: string;
  }

  interface Template {
    cloned_from: string | null;
    command: string[] | null;
    created_at: string;
    defaults: Defaults;
    description: string;
    env: VariableRecord[];
    findings: Finding[];
    gpu: Gpu;
    id: string;
    idle: Idle;
    launchers: Launcher[];
    limits: Limits;
    managed: boolean;
    mounts: Mount[];
    name: string;
    network: string | null;
    owner: string | null;
    ports: Port[];
    reviewed_revision: number | null; // the last enabled one
    revision: number;
    run_as: RunAs | null;
    scope: 'private' | 'global';
    source: Source;
    status: 'enabled' | 'disabled';
    updated_at: string;
  }

  interface TemplateClone {
    name: string;
  }

  interface TemplateCreate {
    command?: string[] | null; // of workspaces, or arguments for the image's own; null for the image's
    defaults?: Defaults;
    description?: string;
    env?: TemplateVariable[];
    gpu?: Gpu;
    idle?: Idle;
    launchers?: Launcher[];
    limits?: Limits;
    mounts?: Mount[];
    name: string;
    network?: string | null; // on which workspaces of one owner reach each other by name; null for none
    ports?: Port[];
    run_as?: RunAs | null;
    scope?: 'private' | 'global'; // global is for administrators
    source: SourceCreate;
  }

  interface TemplateEnable {
    revision?: number; // refused unless it is the current one
  }

  interface TemplateOfImage {
    id: string;
    name: string;
  }

  interface TemplateOfOperation {
    id: string;
    name: string;
  }

  interface TemplateOfRecommendation {
    id: string;
    name: string;
  }

  interface TemplateOfWorkspace {
    id: string;
    name: string;
    newer_revision: number | null;
    revision: number;
  }

  interface TemplatePage {
    items: Template[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface TemplatePatch {
    command?: string[] | null; // of workspaces, or arguments for the image's own; null for the image's
    defaults?: Defaults;
    description?: string;
    env?: TemplateVariable[];
    gpu?: Gpu;
    idle?: Idle;
    launchers?: Launcher[];
    limits?: Limits;
    mounts?: Mount[];
    name?: string;
    network?: string | null; // on which workspaces of one owner reach each other by name; null for none
    ports?: Port[];
    run_as?: RunAs | null;
    source?: SourceChange;
  }

  interface TemplateVariable {
    name: string;
    secret?: boolean;
    value?: string | null;
  }

  interface Terminal {
    active_at: string;
    cols: number;
    command: string[] | null; // null: the shell
    exit_code: number | null;
    id: string;
    opened_at: string;
    rows: number;
    state: 'running' | 'exited';
    title: string; // as its program has set it
    viewers: number;
  }

  interface TerminalOpen {
    cols?: number;
    command?: string[]; // default: the user's shell in the workspace
    rows?: number;
  }

  interface TerminalPage {
    items: Terminal[];
    limit: number;
    max: number; // the most that a workspace has
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface TicketCreate {
    url: string; // path below /api/ with its query, as for a GET with other credentials
  }

  interface Token {
    created_at: string;
    expires_at: string;
    expires_soon: boolean; // within seven days
    id: string;
    last_used_at: string | null; // to the minute
    last_used_from: string | null; // the address of that use
    name: string;
    prefix: string; // the secret's first characters
    scopes: string[]; // what it may do besides; `app:WORKSPACE/PORT` alone: all that it opens
    status: 'active' | 'expired';
  }

  interface TokenCreate {
    app?: string | null; // one app, as WORKSPACE/PORT, which is then all that the token opens
    expires_days?: number; // its lifetime in days
    name: string;
    scopes?: ('apps' | 'files')[]; // `files`: it also reaches the owner's files; `apps`: programs of the owner's workspaces; none by default
  }

  interface TokenPage {
    items: Token[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface Updates {
    applied_at: string | null;
    available: string; // the newest release seen, unless it is installed
    checked_at: string | null;
    installed_by: string; // package or checkout
    installed_commit: string;
    installed_version: string; // empty for a checkout
    notes: string;
    outcome: string;
    problem: string; // of the last check
    reason: string;
    release_keys: number; // of this build; without one nothing is applied
    source: string;
  }

  interface UpdatesReport {
    report: About;
    updates: Updates | null;
  }

  interface UpgradeChange {
    after: any;
    before: any;
    name: string | null; // of the variable, resource or port
    needs_container: boolean;
    part: 'image' | 'command' | 'run_as' | 'mounts' | 'network' | 'env' | 'resources' | 'ports' | 'launchers' | 'idle' | 'gpu';
  }

  interface UpgradePlan {
    after: number; // the newest revision of its template
    before: number; // the workspace's revision
    changes: UpgradeChange[];
    container: 'none' | 'kept' | 'replaced'; // replaced: what is installed in it is lost
  }

  interface Uploaded {
    etag: string; // as a download's ETag, without its quotes
    modified_at: string | null;
    path: string; // percent-encoded, below the file root
    replaced: boolean;
    size: number;
  }

  interface Usage {
    cpu: number; // cores of running workspaces
    gpus: number;
    image_bytes: number; // together, when the store was last read; shared layers count once
    memory_bytes: number; // of running workspaces
    quota: Quota;
    running: number; // running, starting or stopping workspaces
    workspaces: number;
  }

  interface User {
    created_at: string;
    disabled: boolean;
    display_name: string;
    has_password: boolean;
    name: string;
    note: string;
    password_closed: boolean;
    quota: string | null; // its policy; null means the default one
    retired: boolean; // its Linux account was removed: nobody can use it any more
    status: string;
    superuser: boolean;
    uid: number | null;
    updated_at: string;
  }

  interface UserPage {
    items: User[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface UserPatch {
    disabled?: boolean; // administrators
    display_name?: string;
    quota?: string | null; // administrators: a policy; null means the default one
    superuser?: boolean; // only as it is: `svc admin edit-user` changes it
  }

  interface Variable {
    name: string;
    value: string;
  }

  interface VariableRecord {
    is_set: boolean;
    name: string;
    secret: boolean;
    value: string | null;
  }

  interface Version {
    api: string;
    commit: string;
    schema: number; // number of the newest migration
    version: string;
  }

  interface Workspace {
    allowed_actions: string[];
    command: string[] | null; // of its own; null for the template's, or the image's
    created_at: string;
    delete_when_stopped: boolean;
    display_name: string;
    env: Variable[];
    exit_code: number | null;
    gpus: GpuOfWorkspace[];
    health: 'unknown' | 'ok' | 'gpu_lost';
    id: string;
    idle: IdleOfWorkspace;
    image: ImageOfWorkspace;
    image_status: string;
    last_error: LastError | null;
    launchers: WorkspaceLauncher[];
    limits_missing: string[]; // resources that this host cannot limit
    mounts: MountOfWorkspace[];
    name: string;
    network: string | null; // of the owner's, on which it has its own name; null for none
    newer_image: boolean; // the store has an image of this reference that was pulled or built after the container was made; an upgrade takes it
    operation: OperationOfWorkspace | null;
    owner: string;
    ports: WorkspacePort[];
    resources: Resources;
    restart_on_boot: boolean;
    started_at: string | null;
    status: 'creating' | 'stopped' | 'starting' | 'running' | 'stopping' | 'deleting' | 'failed';
    status_reason: string | null;
    status_since: string;
    stopped_at: string | null;
    template: TemplateOfWorkspace;
    updated_at: string;
    warnings: RecordWarning[];
  }

  interface WorkspaceCheck {
    command?: string[] | null; // in place of the template's; null for the template's, or the image's
    delete_when_stopped?: boolean; // it is deleted once it has been stopped for 10 minutes
    display_name?: string;
    env?: Variable[];
    name?: string;
    network?: string | null; // on which workspaces of one owner reach each other by name; null for none
    ports?: PortAdd[]; // in addition to those of the template
    resources?: ResourcesRequest;
    restart_on_boot?: boolean;
    template: string; // the template's id or name
  }

  interface WorkspaceCreate {
    command?: string[] | null; // in place of the template's; null for the template's, or the image's
    delete_when_stopped?: boolean; // it is deleted once it has been stopped for 10 minutes
    display_name?: string;
    env?: Variable[];
    name: string;
    network?: string | null; // on which workspaces of one owner reach each other by name; null for none
    ports?: PortAdd[]; // in addition to those of the template
    resources?: ResourcesRequest;
    restart_on_boot?: boolean;
    template: string; // the template's id or name
  }

  interface WorkspaceEdit {
    command?: string[] | null; // in place of the template's; null for the template's, or the image's
    display_name?: string;
    env?: Variable[];
    name?: string;
    network?: string | null; // on which workspaces of one owner reach each other by name; null for none
    replace_container?: boolean; // a new container may replace the present one, with what is installed in it
    resources?: ResourcesRequest;
    restart_on_boot?: boolean;
  }

  interface WorkspaceExec {
    command: string[]; // the program and its arguments: as many as the kernel takes, about 2 MiB
    timeout_s?: number;
  }

  interface WorkspaceExtend {
    hours: number; // from now on
  }

  interface WorkspaceLauncher {
    autostart: boolean;
    name: string;
    port: string | null; // the name of the port that it serves
    title: string;
    url: string | null; // of its port on the host; of use while it runs
  }

  interface WorkspacePage {
    items: Workspace[];
    limit: number;
    next_offset: number | null;
    offset: number;
    total: number;
  }

  interface WorkspacePort {
    access: 'owner' | 'host';
    connect: string; // what a person on this host opens or runs: a URL, HOST:PORT, an `ssh` or `psql` command
    container_port: number;
    host_port: number;
    kind: 'http' | 'https' | 'tcp' | 'ssh' | 'postgres';
    name: string;
    ssh: string; // the command on another computer after which `connect` works there too
    url: string | null; // its address on this host; null for `tcp` and `ssh`
    user: string | null;
  }

  interface WorkspaceRename {
    name: string;
  }

  interface WorkspaceStart {
  }

  interface WorkspaceStarted {
    allowed_actions: string[];
    command: string[] | null; // of its own; null for the template's, or the image's
    created_at: string;
    delete_when_stopped: boolean;
    display_name: string;
    env: Variable[];
    exit_code: number | null;
    gpus: GpuOfWorkspace[];
    health: 'unknown' | 'ok' | 'gpu_lost';
    id: string;
    idle: IdleOfWorkspace;
    image: ImageOfWorkspace;
    image_status: string;
    last_error: LastError | null;
    launchers: WorkspaceLauncher[];
    launchers_failed: LauncherFailed[]; // with autostart: by two seconds after the start, or sooner if all listen
    launchers_not_listening: LauncherNotListening[]; // those that run, by then
    limits_missing: string[]; // resources that this host cannot limit
    mounts: MountOfWorkspace[];
    name: string;
    network: string | null; // of the owner's, on which it has its own name; null for none
    newer_image: boolean; // the store has an image of this reference that was pulled or built after the container was made; an upgrade takes it
    operation: OperationOfWorkspace | null;
    owner: string;
    ports: WorkspacePort[];
    resources: Resources;
    restart_on_boot: boolean;
    started_at: string | null;
    status: 'creating' | 'stopped' | 'starting' | 'running' | 'stopping' | 'deleting' | 'failed';
    status_reason: string | null;
    status_since: string;
    stopped_at: string | null;
    template: TemplateOfWorkspace;
    updated_at: string;
    warnings: RecordWarning[];
  }

  interface WorkspaceStop {
    grace_s?: number;
  }

  interface WorkspaceUpgrade {
    replace_container?: boolean; // a new container may replace the present one, with what is installed in it
    revision?: number; // refused unless it is the newest one
  }

  interface Replies {
    'GET /api/admin/audit': AuditPage;
    'GET /api/admin/audit/chain': AuditChain;
    'GET /api/admin/backups': BackupPage;
    'GET /api/admin/disk': DiskUsagePage;
    'POST /api/admin/disk/measure': MeasureReply;
    'GET /api/admin/host': HostFindingPage;
    'GET /api/admin/license': License;
    'GET /api/admin/quotas': QuotaPage;
    'DELETE /api/admin/quotas/*': null;
    'PUT /api/admin/quotas/*': QuotaPolicy;
    'GET /api/admin/recovery-sets': RecoverySetPage;
    'PUT /api/admin/registries': Registries;
    'GET /api/admin/templates': TemplatePage;
    'GET /api/admin/updates': UpdatesReport;
    'GET /api/admin/users': AccountPage;
    'GET /api/audit': OwnAuditPage;
    'POST /api/auth/login': LoginAnswer;
    'POST /api/auth/logout': null;
    'GET /api/auth/session': SessionAnswer;
    'DELETE /api/auth/sessions': EndedSessions;
    'GET /api/auth/sessions': SessionPage;
    'DELETE /api/auth/sessions/*': null;
    'GET /api/certificate': null;
    'GET /api/events': null;
    'GET /api/events/history': EventPage;
    'GET /api/fs/roots': RootList;
    'GET /api/fs/*/archive': null;
    'GET /api/fs/*/download': null;
    'GET /api/fs/*/entries': null;
    'DELETE /api/fs/*/file': Removed;
    'PUT /api/fs/*/file': Uploaded;
    'GET /api/fs/*/list': EntryList;
    'POST /api/fs/*/mkdir': Entry;
    'POST /api/fs/*/move': Entry;
    'GET /api/fs/*/read': FileContent;
    'GET /api/health': Health;
    'GET /api/images': ImagePage;
    'GET /api/images/allowlist': Allowlist;
    'GET /api/images/builds': BuildPage;
    'GET /api/images/overview': Overview;
    'POST /api/images/prune': Pruned;
    'DELETE /api/images/*': null;
    'GET /api/openapi.json': null;
    'GET /api/operations': OperationPage;
    'GET /api/operations/*': Operation;
    'POST /api/operations/*/cancel': Operation;
    'GET /api/operations/*/log': OperationLog;
    'GET /api/servers/hardware': HostHardware;
    'GET /api/templates': TemplatePage;
    'POST /api/templates': Template;
    'POST /api/templates/import': Template;
    'DELETE /api/templates/*': null;
    'GET /api/templates/*': Template;
    'PATCH /api/templates/*': Template;
    'POST /api/templates/*/clone': Template;
    'GET /api/templates/*/context': ContextFilePage;
    'PUT /api/templates/*/context': Template;
    'DELETE /api/templates/*/context/file': Template;
    'GET /api/templates/*/context/file': null;
    'PUT /api/templates/*/context/file': Template;
    'GET /api/templates/*/diff': Difference;
    'POST /api/templates/*/disable': Template;
    'GET /api/templates/*/dockerfile': Dockerfile;
    'PUT /api/templates/*/dockerfile': Template;
    'POST /api/templates/*/enable': Template;
    'GET /api/templates/*/export': null;
    'DELETE /api/templates/*/image': null;
    'GET /api/templates/*/image': Image;
    'POST /api/templates/*/image/build': Accepted;
    'GET /api/templates/*/image/preflight': CheckedImage;
    'POST /api/templates/*/image/pull': Accepted;
    'GET /api/templates/*/revisions': RevisionPage;
    'GET /api/templates/*/revisions/*': RevisionContent;
    'GET /api/templates/*/revisions/*/context': ContextFilePage;
    'POST /api/tickets': NewTicket;
    'GET /api/tokens': TokenPage;
    'POST /api/tokens': NewToken;
    'DELETE /api/tokens/*': null;
    'GET /api/usage/me': Usage;
    'GET /api/usage/workspaces': LiveUseList;
    'GET /api/users': UserPage;
    'GET /api/users/me': Me;
    'PATCH /api/users/*': User;
    'PUT /api/users/*/password': null;
    'GET /api/version': Version;
    'GET /api/workspaces': WorkspacePage;
    'POST /api/workspaces': Workspace;
    'GET /api/workspaces/capacity': Capacity;
    'POST /api/workspaces/check': CheckedWorkspace;
    'POST /api/workspaces/recommend': Recommendation;
    'POST /api/workspaces/setup': Accepted;
    'DELETE /api/workspaces/*': null;
    'GET /api/workspaces/*': Workspace;
    'PATCH /api/workspaces/*': Workspace;
    'POST /api/workspaces/*/exec': ExecResult;
    'GET /api/workspaces/*/exec/stream': null;
    'POST /api/workspaces/*/extend': Workspace;
    'GET /api/workspaces/*/launchers': LauncherList;
    'GET /api/workspaces/*/launchers/*/logs': LogText;
    'POST /api/workspaces/*/launchers/*/start': LauncherState;
    'POST /api/workspaces/*/launchers/*/stop': LauncherState;
    'GET /api/workspaces/*/logs': LogText;
    'GET /api/workspaces/*/logs/raw': null;
    'GET /api/workspaces/*/logs/stream': null;
    'GET /api/workspaces/*/monitor': Snapshot;
    'GET /api/workspaces/*/monitor/stream': null;
    'GET /api/workspaces/*/ports': PortList;
    'POST /api/workspaces/*/ports': PortState;
    'DELETE /api/workspaces/*/ports/*': null;
    'POST /api/workspaces/*/ports/*/open': AppLink;
    'POST /api/workspaces/*/rename': Workspace;
    'POST /api/workspaces/*/restart': WorkspaceStarted;
    'POST /api/workspaces/*/start': WorkspaceStarted;
    'POST /api/workspaces/*/stop': Workspace;
    'GET /api/workspaces/*/terminal': null;
    'GET /api/workspaces/*/terminals': TerminalPage;
    'POST /api/workspaces/*/terminals': NewTerminal;
    'DELETE /api/workspaces/*/terminals/*': null;
    'GET /api/workspaces/*/upgrade': UpgradePlan;
    'POST /api/workspaces/*/upgrade': Workspace;
  }
}
