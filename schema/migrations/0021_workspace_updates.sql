-- A changed command and a changed network of a workspace are events too.
DROP TRIGGER events_workspace_updated;

CREATE TRIGGER events_workspace_updated AFTER UPDATE OF name, display_name, template_id, template_revision,
    image_ref, cpu_limit, memory_bytes, shm_bytes, pids_limit, gpu_count, gpu_mode, env_json, restart_on_boot,
    keep_until, command_json, network ON workspaces
WHEN (OLD.name, OLD.display_name, OLD.template_id, OLD.template_revision, OLD.image_ref, OLD.cpu_limit,
      OLD.memory_bytes, OLD.shm_bytes, OLD.pids_limit, OLD.gpu_count, OLD.gpu_mode, OLD.env_json,
      OLD.restart_on_boot, OLD.keep_until, OLD.command_json, OLD.network)
    IS NOT
     (NEW.name, NEW.display_name, NEW.template_id, NEW.template_revision, NEW.image_ref, NEW.cpu_limit,
      NEW.memory_bytes, NEW.shm_bytes, NEW.pids_limit, NEW.gpu_count, NEW.gpu_mode, NEW.env_json,
      NEW.restart_on_boot, NEW.keep_until, NEW.command_json, NEW.network)
BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('workspace.updated', NEW.owner_id, 'workspace', NEW.id, NEW.name, '{"changed":[' || ltrim(
        iif(OLD.name IS NOT NEW.name, ',"name"', '')
        || iif(OLD.display_name IS NOT NEW.display_name, ',"display_name"', '')
        || iif((OLD.template_id, OLD.template_revision, OLD.image_ref)
            IS NOT (NEW.template_id, NEW.template_revision, NEW.image_ref), ',"template"', '')
        || iif((OLD.cpu_limit, OLD.memory_bytes, OLD.shm_bytes, OLD.pids_limit, OLD.gpu_count, OLD.gpu_mode)
            IS NOT (NEW.cpu_limit, NEW.memory_bytes, NEW.shm_bytes, NEW.pids_limit, NEW.gpu_count, NEW.gpu_mode),
            ',"resources"', '')
        || iif(OLD.env_json IS NOT NEW.env_json, ',"env"', '')
        || iif(OLD.command_json IS NOT NEW.command_json, ',"command"', '')
        || iif(OLD.network IS NOT NEW.network, ',"network"', '')
        || iif(OLD.restart_on_boot IS NOT NEW.restart_on_boot, ',"restart_on_boot"', '')
        || iif(OLD.keep_until IS NOT NEW.keep_until, ',"keep_until"', ''), ',') || ']}');
END;
