{{/* What the names of all objects begin with, short enough for what is put after it: a Service's name has 63 characters at most, and
no dots. */}}
{{- define "intents.name" -}}
{{- .Values.nameOverride | default .Release.Name | replace "." "-" | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{- define "intents.core" -}}
{{- include "intents.name" . }}-core
{{- end -}}

{{- define "intents.gateway" -}}
{{- include "intents.name" . }}-gateway
{{- end -}}

{{/* What a component's pods are selected by: a list of the root and the component. It must never change. */}}
{{- define "intents.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* The labels of an object: a list of the root, the component and, if the object has some of its own, those. */}}
{{- define "intents.labels" -}}
{{- $root := index . 0 -}}
{{- $own := dict -}}
{{- if gt (len .) 2 }}{{ $own = index . 2 }}{{ end -}}
{{ include "intents.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- with merge (dict) $own $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of a component's pods: a list of the root, the component and its values. Nothing of the chart's version, so
that another chart alone restarts nobody. */}}
{{- define "intents.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
labels:
  {{- include "intents.selector" . | nindent 2 }}
  {{- with merge (dict) $values.podLabels $root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := dict }}
{{- with include "intents.checksum" . }}{{ $annotations = dict "checksum/secrets" . }}{{ end }}
{{- with merge $annotations $values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The hash of what a component's pods read of Secrets and of the ConfigMap, so that an upgrade after a change of these replaces the
pods that read them. It is empty where the cluster cannot be seen, as by `helm template`. */}}
{{- define "intents.checksum" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if and $root.Values.secret.checksum (ne $component "migrate") -}}
{{- $read := dict -}}
{{- $data := include "intents.dataOf" (list $root "Secret" $root.Values.secret.name) | fromJson -}}
{{- range ternary (list "redisURL" "gatewaySecret") (keys $root.Values.secret.keys) (eq $component "gateway") -}}
{{- $key := get $root.Values.secret.keys . -}}
{{- if hasKey $data $key }}{{ $_ := set $read $key (get $data $key) }}{{ end -}}
{{- end -}}
{{- $files := include "intents.dataOf" (list $root "Secret" $root.Values.secret.settingsFiles) | fromJson -}}
{{- with get $files (printf "%s.env" $component) }}{{ $_ := set $read "settingsFiles" . }}{{ end -}}
{{- range $kind, $name := dict "ConfigMap" $root.Values.certificateAuthorities.configMap "Secret" $root.Values.certificateAuthorities.secret -}}
{{- with include "intents.dataOf" (list $root $kind $name) | fromJson }}{{ $_ := set $read (printf "authorities%s" $kind) . }}{{ end -}}
{{- end -}}
{{- with $read }}{{ toJson . | sha256sum }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The data of an object in the cluster, as JSON: a list of the root, its kind and its name. */}}
{{- define "intents.dataOf" -}}
{{- $object := dict -}}
{{- with index . 2 }}{{ $object = lookup "v1" (index $ 1) (index $ 0).Release.Namespace . }}{{ end -}}
{{- get $object "data" | default dict | toJson -}}
{{- end -}}

{{/* A component's image: a list of the root and the component's values. */}}
{{- define "intents.image" -}}
{{- $root := index . 0 -}}
{{- $image := (index . 1).image -}}
{{- with $root.Values.image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $root.Values.image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "intents.secretName" -}}
{{- required "secret.name is required: the Secret with database-url, redis-url and gateway-secret" .Values.secret.name -}}
{{- end -}}

{{/* A setting from the Secret: a list of the root, the setting, the key's name in values and, if the Secret may lack the key, a
further word. */}}
{{- define "intents.fromSecret" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ include "intents.secretName" $root }}
      key: {{ get $root.Values.secret.keys (index . 2) }}
      {{- if gt (len .) 3 }}
      optional: true
      {{- end }}
{{- end -}}

{{/* What pods mount: a list of the root, the component and its values. */}}
{{- define "intents.volumes" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $settings := and (ne $component "migrate") $root.Values.secret.settingsFiles -}}
{{- $rpc := and (eq $component "core") $root.Values.secret.keys.rpcFile -}}
{{- $quotes := and (eq $component "core") $root.Values.secret.keys.quotesFile -}}
{{- $screening := and (eq $component "core") $root.Values.screening.configMap -}}
{{- $authorities := $root.Values.certificateAuthorities -}}
{{- $extra := (index . 2).extraVolumes -}}
{{- if or $settings $rpc $quotes $screening $authorities.configMap $authorities.secret $extra }}
volumes:
  {{- with $settings }}
  - name: settings
    secret:
      secretName: {{ . }}
      defaultMode: 0444
      items: [{key: {{ $component }}.env, path: {{ $component }}.env}]
  {{- end }}
  {{- with $rpc }}
  - name: rpc
    secret:
      secretName: {{ include "intents.secretName" $root }}
      defaultMode: 0444
      items: [{key: {{ . }}, path: rpc.json}]
  {{- end }}
  {{- with $quotes }}
  - name: quotes
    secret:
      secretName: {{ include "intents.secretName" $root }}
      defaultMode: 0444
      items: [{key: {{ . }}, path: quotes.json}]
  {{- end }}
  {{- with $screening }}
  - name: screening
    configMap:
      name: {{ . }}
      defaultMode: 0444
      items:
        {{- range $root.Values.screening.files }}
        - {key: {{ . }}, path: {{ . }}}
        {{- end }}
  {{- end }}
  {{- if or $authorities.configMap $authorities.secret }}
  - name: authorities
    projected:
      defaultMode: 0444
      sources:
        {{- with $authorities.configMap }}
        - configMap: {name: {{ . }}}
        {{- end }}
        {{- with $authorities.secret }}
        - secret: {name: {{ . }}}
        {{- end }}
  {{- end }}
  {{- with $extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "intents.mounts" -}}
{{- $root := index . 0 -}}
{{- $settings := and (ne (index . 1) "migrate") $root.Values.secret.settingsFiles -}}
{{- $rpc := and (eq (index . 1) "core") $root.Values.secret.keys.rpcFile -}}
{{- $quotes := and (eq (index . 1) "core") $root.Values.secret.keys.quotesFile -}}
{{- $screening := and (eq (index . 1) "core") $root.Values.screening.configMap -}}
{{- $authorities := $root.Values.certificateAuthorities -}}
{{- $extra := (index . 2).extraVolumeMounts -}}
{{- if or $settings $rpc $quotes $screening $authorities.configMap $authorities.secret $extra }}
volumeMounts:
  {{- if $settings }}
  - {name: settings, mountPath: /etc/intents, readOnly: true}
  {{- end }}
  {{- if $rpc }}
  - {name: rpc, mountPath: /etc/intents-rpc, readOnly: true}
  {{- end }}
  {{- if $quotes }}
  - {name: quotes, mountPath: /etc/intents-quotes, readOnly: true}
  {{- end }}
  {{- if $screening }}
  - {name: screening, mountPath: /etc/intents-screening, readOnly: true}
  {{- end }}
  {{- if or $authorities.configMap $authorities.secret }}
  - {name: authorities, mountPath: /etc/ssl/authorities, readOnly: true}
  {{- end }}
  {{- with $extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The files of addresses that are not served, and the contact of refusals. */}}
{{- define "intents.screening" -}}
{{- with .Values.screening.configMap }}
{{- if get $.Values.core.settings "CORE_SCREENING_FILE" }}{{ fail "screening.configMap and CORE_SCREENING_FILE in core.settings both name files: leave one out" }}{{ end }}
- {name: CORE_SCREENING_FILE, value: {{ printf "/etc/intents-screening/%s" (join ",/etc/intents-screening/" $.Values.screening.files) | quote }}}
{{- end }}
{{- with .Values.screening.contact }}
- {name: CORE_SCREENING_CONTACT, value: {{ . | quote }}}
{{- end }}
{{- end -}}

{{/* Go reads the authorities of a folder beside those of the image's bundle. */}}
{{- define "intents.authorities" -}}
{{- if or .Values.certificateAuthorities.configMap .Values.certificateAuthorities.secret }}
- {name: SSL_CERT_DIR, value: /etc/ssl/authorities}
{{- end }}
{{- end -}}

{{/* The base URL of all cores: the name of their headless Service, which has the address of each. */}}
{{- define "intents.coreURL" -}}
http://{{ include "intents.core" . }}.{{ .Release.Namespace }}.svc:8081
{{- end -}}

{{/* Probes of the operators' port. Readiness is asked often, so that a pod that ends gets no more clients. */}}
{{- define "intents.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: operators}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: operators}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: operators}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}

{{/* The restricted profile of the pod security standards, and a file system that nobody can write to. */}}
{{- define "intents.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "intents.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Where a component's pods go: a list of the root, the component and its values. */}}
{{- define "intents.placement" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
{{- $spread := $values.topologySpreadConstraints }}
{{- if not $spread }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
{{- $spread = append $spread (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway" "matchLabelKeys" (list "pod-template-hash")) }}
{{- end }}
{{- end }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "intents.selector" . | fromYaml)) -}}
topologySpreadConstraints:
  {{- range $spread }}
  {{- toYaml (list (hasKey . "labelSelector" | ternary . (merge (dict) . $selector))) | nindent 2 }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Who a component's pods are: a list of the root and the component. */}}
{{- define "intents.serviceAccount" -}}
{{- $account := (get (index . 0).Values (index . 1)).serviceAccount -}}
{{- $account.name | default ($account.create | ternary (printf "%s-%s" (include "intents.name" (index . 0)) (index . 1)) "default") -}}
{{- end -}}

{{/* Further settings, sorted by name. */}}
{{- define "intents.settings" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{/* What of deploy the chart takes along: a list of the root, the pattern of its files and the value that turns it off. */}}
{{- define "intents.files" -}}
{{- $root := index . 0 -}}
{{- $pattern := index . 1 -}}
{{- if not ($root.Files.Glob $pattern) }}
{{- fail (printf "this chart has no %s: a packer, such as Flux's, has left out its symbolic link. Copy the folder that deploy/helm/%s leads to in its place before you pack it, use `helm package deploy/helm`, or set %s.enabled=false" $pattern (dir $pattern) (index . 2)) }}
{{- end }}
{{- end -}}
