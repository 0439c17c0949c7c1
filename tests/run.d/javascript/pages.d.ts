// Types that the check of the pages' JavaScript needs besides schema/api.d.ts.

declare namespace Api {
  // What is answered to 'GET' and `/api/workspaces/${string}/ports?limit=1`: a PortList. Any, where the path is not known.
  type Reply<M extends string, P extends string> = `${M} ${Stars<P>}` extends keyof Replies ? Replies[`${M} ${Stars<P>}`] : any;
  type Item<P extends string> = Reply<'GET', P> extends { items: (infer I)[] } ? I : any;

  // A path as Replies has it: without its query, and `*` for what is only known to be a string.
  type Stars<P extends string> = P extends `${infer Path}?${string}` ? Stars<Path>
    : P extends `${infer Head}/${infer Rest}` ? `${Star<Head>}/${Stars<Rest>}`
    : Star<P>;
  type Star<S extends string> = string extends S ? '*' : S;

  // The limits of a quota.
  type LimitKey = Exclude<keyof QuotaPolicy, 'name' | 'users'>;
}

declare namespace Page {
  // The element that a selector finds: of the tag that it names; without one it may be a field of a form.
  type Found<S extends string> = S extends `${infer One}, ${infer Others}` ? Found<One> | Found<Others>
    : S extends `${string} ${infer Last}` ? Found<Last>
    : OfTag<Before<Before<Before<Before<S, '['>, '.'>, '#'>, ':'>>;
  type Before<S extends string, C extends string> = S extends `${infer Head}${C}${string}` ? Head : S;
  type OfTag<T> = T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T]
    : HTMLElement & Pick<HTMLInputElement, 'checked' | 'disabled' | 'files' | 'indeterminate' | 'name' | 'value' | 'select'>;
}

// Pieces of others, which the pages load beside their own files.
interface Window {
  uPlot: any;
}
declare module '*/xterm.mjs';
declare module '*/addon-fit.mjs';
